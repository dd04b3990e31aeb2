project "acme" {
  statis = "ACTIVE"
  smtp_config {
    host       = "h.example"
    port       = 70000
    from_email = "x"
    password   = <<-EOT
      hunter2
      hunter3
    EOT
  }
  template "A" {
    name             = "A"
    subject_template = "Hello, Grüße {{user name}}"
    body_html        = file("mail/none.html")
  }
}
