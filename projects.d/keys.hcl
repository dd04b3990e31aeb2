# Only hashes stand here. "fingerpost keys create NAME --allow resolve" adds a key and prints it once.
#
# The demo key is the one that everybody knows: "serve" prints it, warns about it, and refuses it where the service
# listens on any address but loopback. Remove this block before you go on.
key "demo" {
  id    = "31g45atf"
  hash  = "sha256:8c1b5521612c158d57de39e59b168b20a19b4d36b0eb0b0e270dd7e72fe71852"
  allow = ["resolve", "read"]
}
