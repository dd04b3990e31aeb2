project "acme" {
  name = "Acme"
}
}                       # ERROR: argument or block definition required
project "b" {
  name = "B"
}
