# An internal tool: people are invited, and every name below globex.example is theirs but one.
project "globex" {
  name   = "Globex Intranet"
  status = "ACTIVE"

  domain "globex.example" { primary = true }
  domain "*.globex.example" {}
  domain "bücher.globex.example" {} # stored and matched as xn--bcher-kva.globex.example

  service_settings {
    auth_enabled  = true
    audit_enabled = true
  }

  auth_settings {
    registration_mode   = "INVITE_ONLY" # invite_only follows it
    two_factor_required = true
  }
}
