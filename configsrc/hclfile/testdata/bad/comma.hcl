project "acme" {
  name = "Acme",        # ERROR: unexpected comma after argument
  status = "ACTIVE",
}
