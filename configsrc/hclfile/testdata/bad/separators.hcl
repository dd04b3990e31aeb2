project "acme" {
  name = "x"
  labels = { a = "1" b = "2" } # ERROR: two attributes have nothing between them
}
