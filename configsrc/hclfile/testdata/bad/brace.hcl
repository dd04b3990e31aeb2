project "acme" {        # ERROR: unclosed configuration block
  name = "Acme"
  domain "a.example" {
  }
