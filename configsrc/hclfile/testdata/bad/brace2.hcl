project "acme" {
  name = "Acme"
}
}                       # ERROR: this "}" closes nothing
project "b" {
  name = "B"
}
