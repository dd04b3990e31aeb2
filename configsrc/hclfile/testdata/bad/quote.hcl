project "acme" {
  name   = "Acme        # ERROR: the string is not closed
  status = "ACTIVE"
}
