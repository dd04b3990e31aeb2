project "acme" {
  name = "Acme"
  status: "ACTIVE"      # ERROR: has an equals sign
}
