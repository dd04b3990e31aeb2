project "acme" {        # ERROR: the block is not closed
  name = "Acme"
  domain "a.example" {
  }
