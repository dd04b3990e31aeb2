project "acme" {
  name        = var.name                     # ERROR: references and expressions are not allowed
  description = "Hello ${name}"              # ERROR: write $${
  status      = true ? "DRAFT" : "ACTIVE"    # ERROR: references and expressions are not allowed
  uuid        = upper("x")                   # ERROR: unknown function "upper"
  id          = 1 + 1                        # ERROR: references and expressions are not allowed
  service_settings {
    sms_provider         = "${1e10000000}"   # ERROR: write $${
    auth_enabled         = !true             # ERROR: references and expressions are not allowed
    audit_retention_days = length([1])       # ERROR: unknown function "length"
    mail_enabled         = tobool(1)         # ERROR: unknown function
  }
  auth_settings {
    registration_mode = env("MODE")          # ERROR: env() cannot stand here
    jwt_secret        = "a${1}b"             # ERROR: write $${
  }
  smtp_config {
    host       = file("host.txt")            # ERROR: file() cannot stand here
    from_email = [for a in ["x"] : a]        # ERROR: references and expressions are not allowed
    from_name  = "x%{ if true }y%{ endif }"  # ERROR: write $${
    password   = enw("X")                    # ERROR: did you mean `env`?
    reply_to   = trimsuffix("a", "\n")       # ERROR: stands around a heredoc
    # ERROR@+1: stands around a heredoc
    username   = trimsuffix(<<EOT
x
EOT
    , "x")
  }
  template "A" {
    name             = "A"
    subject_template = sealed("eA==")        # ERROR: sealed() cannot stand here
    body_text        = <<-EOT
      first
      second ${js} # ERROR: write $${
    EOT
    body_html        = local.a["b"].c        # ERROR: references and expressions
  }
}
