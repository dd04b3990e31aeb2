// Package clients makes Go clients of api/openapi.yaml with two generators, into the folders oapi and ogen, and its tests
// call the real service with them.
package clients

//go:generate mkdir -p oapi
//go:generate go tool oapi-codegen -generate types,client,skip-prune -package oapi -o oapi/oapi.go ../../api/openapi.yaml
//go:generate go tool ogen --loglevel error --clean --target ogen --package ogen --config ogen.yml ../../api/openapi.yaml
