project "acme" {
  name   = "Acme"
	primry = true
  domain "日本.example" { active = 1 }
  domain "a.example" { primary = true }
  domain "b.example" { primary = true }
  smtp_config {
    host     = "h.example"
    passwrd  = "hunter2"
    password = "hunter2" # the old one: password = "hunter1"
    username = "u", password = "hunter3"
  }
}
