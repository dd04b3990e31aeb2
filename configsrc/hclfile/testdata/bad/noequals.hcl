project "acme" {
  name = "Acme"
  status: "ACTIVE"      # ERROR: use the equals sign
}
