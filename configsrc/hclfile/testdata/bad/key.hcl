project "acme" {
  name = "Acme"
}
key "fpk_example1_NotARealKeyButLooksLikeOne0000003zrv2t" {       # ERROR: a full API key stands in the file # ERROR: "id" is missing # ERROR: "hash" is missing # ERROR: "allow" is missing
}
# fpk_example1_NotARealKeyButLooksLikeOne0000003zrv2t             # ERROR: a full API key stands in the file
