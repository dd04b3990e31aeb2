project "acme" {
  statis = "ACTIVE"
  smtp_config {
    password = "hunter2
    host     = "h.example"
  }
}
