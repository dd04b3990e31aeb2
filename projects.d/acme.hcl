# A shop: the full set. The label of the block is the slug; one project a file keeps reviews and reloads small.
project "acme" {
  name        = "Acme Shop"
  description = "Storefront and back office"
  status      = "ACTIVE"          # DRAFT when left out; SUSPENDED answers 403
  labels      = { plan = "gold" } # for your gateways and tools, which get it as X-Label-Plan

  # The exact name decides first, then the wildcard with the longest suffix.
  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false } # known, but not verified: 403

  service_settings {
    auth_enabled         = true
    mail_enabled         = true
    audit_retention_days = 365
  }

  auth_settings {
    registration_mode           = "OPEN"
    email_verification_required = true
    jwt_secret                  = env("ACME_JWT_SECRET") # not needed to start: only where the secret is asked for
    jwt_expires_in              = "15m"
    password_min_length         = 12
  }

  smtp_config {
    host        = "smtp.acme.example"
    port        = 587
    username    = "acme"
    password    = env("ACME_SMTP_PASSWORD")
    from_email  = "hello@acme.example"
    from_name   = "Acme"
    tls_enabled = true
  }

  # Wins over the default template of the same code in templates.hcl.
  template "WELCOME" {
    name             = "Welcome to the shop"
    subject_template = "Welcome to {{projectName}}, {{userName}}"
    body_html        = file("mail/acme-welcome.html") # reloaded with this file
    body_text        = <<-EOT
      Welcome to the shop, {{userName}}

      Good to have you at {{projectName}}. Look around: https://shop.acme.example/
    EOT
  }
}
