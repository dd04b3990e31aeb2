project "acme" {
  name = "Acme"
  name = "Acme 2"                    # ERROR: the first is at testdata/bad/twice.hcl:2:3
  uuid = "11111111-2222-4333-8444-555555555555"
  id   = 9
  domain "a.example" { primary = true }
  domain "A.example." {}             # ERROR: domain "a.example" is declared twice
  domain "b.example" { primary = true } # ERROR: the first is "a.example" at testdata/bad/twice.hcl:6:10
  service_settings {}
  service_settings {}                # ERROR: a project has one service_settings block only
  smtp_config {
    host       = "h.example"
    from_email = "a@b.example"
  }
  smtp_config {                      # ERROR: the first is at testdata/bad/twice.hcl:11:3
    host       = "h.example"
    from_email = "a@b.example"
  }
  template "A" {
    name             = "A"
    subject_template = "s"
    body_text        = "t"
  }
  template "A" {                     # ERROR: is declared twice in this project
    name             = "A"
    subject_template = "s"
    body_text        = "t"
  }
}
project "acme" {                     # ERROR: project "acme" is declared twice
  name = "Acme"
}
project "b" {
  name = "B"
  uuid = "11111111-2222-4333-8444-555555555555"  # ERROR: two blocks have the same uuid
  id   = 9                           # ERROR: two blocks have the same id
  domain "a.example" {}              # ERROR: the first is at testdata/bad/twice.hcl:6:10
  template "A" {
    name             = "A"
    subject_template = "s"
    body_text        = "t"
  }
}
defaults {}
defaults {}                          # ERROR: there is one defaults block only
defaults {                           # ERROR: there is one defaults block only
  auth_settings {}
  auth_settings {}                   # ERROR: one auth_settings block only
}
sealing {}
sealing {}                           # ERROR: there is one sealing block only
key "a" {
  id    = "abcdef"
  hash  = "sha256:b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4"
  allow = ["read"]
}
key "b" {
  id    = "abcdef"                   # ERROR: two keys have the same id
  hash  = "sha256:b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4"
  allow = ["read"]
}
key "a" {                            # ERROR: key "a" is declared twice
  id    = "abcdeg"
  hash  = "sha256:b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4b1a2c3d4"
  allow = ["read"]
}
