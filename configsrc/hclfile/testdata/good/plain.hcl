# Clear text is a warning; bare labels, parentheses and null are fine.
project plain {
  name        = ("Plain")
  description = null
  domain "BÜCHER.example." {}
  domain "аcme.example" {}  # WARNING: mixes scripts
  domain "日本語abc.example" {}
  service_settings {
    sms_provider         = null
    audit_retention_days = (30)
  }
  auth_settings {
    jwt_secret = "short"  # WARNING: clear text # WARNING: shorter than 32 bytes
  }
  smtp_config {
    host       = "192.0.2.1"
    username   = "u"
    # WARNING@+1: clear text
    password   = trimsuffix(<<-EOT
      a long password over
      two lines
    EOT
    , "\n")
    from_email = "a@plain.example"
    ca_file    = "tls/ca.pem"
  }
}

key "k.1" {
  id    = "abcdef"
  hash  = "sha256:b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4"
  allow = [("read"), "read"]
  expires_at = "2027-06-30T00:00:00.123Z"
}
