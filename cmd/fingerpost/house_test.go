package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// plan is who may import whom. An edge that is not here is a design change, not a detail: it is made here first, with
// its reason in the commit. "std" is allowed everywhere. A module path allows its packages.
var plan = map[string][]string{
	"fingerpost/resolver/catalog": {"golang.org/x/net/idna", "golang.org/x/net/publicsuffix"},
	"fingerpost/resolver/pebblefs": {"github.com/cockroachdb/pebble/v2/vfs",
		"golang.org/x/sys/unix"}, // x/sys: renameat2, which package syscall lacks
	"fingerpost/resolver/store": {"fingerpost/resolver/catalog", "fingerpost/resolver/pebblefs", "github.com/cockroachdb/pebble/v2"},
	"fingerpost/resolver/ledger": {"fingerpost/resolver/catalog", "fingerpost/resolver/pebblefs", "fingerpost/resolver/ledger/salvage",
		"github.com/cockroachdb/pebble/v2"},
	"fingerpost/resolver/ledger/salvage": {"github.com/cockroachdb/pebble/v2"},
	"fingerpost/resolver/archive": {"fingerpost/resolver/store", "fingerpost/resolver/ledger", "fingerpost/resolver/pebblefs",
		"github.com/cockroachdb/pebble/v2/vfs"},
	"fingerpost/resolver": {"fingerpost/resolver/catalog", "fingerpost/resolver/store", "fingerpost/resolver/ledger",
		"fingerpost/resolver/archive", "github.com/dgraph-io/ristretto/v2"},
	"fingerpost/configsrc/hclfile": {"fingerpost/resolver/catalog", "github.com/hashicorp/hcl/v2", "github.com/zclconf/go-cty"},
	"fingerpost/configsrc/seal":    {"fingerpost/resolver/catalog", "filippo.io/age"},
	"fingerpost/configsrc": {"fingerpost/resolver/catalog", "fingerpost/configsrc/hclfile", "fingerpost/configsrc/seal",
		"github.com/fsnotify/fsnotify", "golang.org/x/sys/unix"}, // x/sys: renameat2, which package syscall lacks
	"fingerpost/mailer": {"fingerpost/resolver/catalog", "github.com/domodwyer/mailyak/v3",
		"golang.org/x/net/html"}, // x/net/html: reads HTML, to make text of it
	"fingerpost/api": {"fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/configsrc", "fingerpost/mailer",
		"github.com/valyala/fasthttp", "github.com/fasthttp/router", "github.com/prometheus/client_golang",
		"github.com/golang-jwt/jwt/v5"},
	"fingerpost/cmd/fingerpost": {"fingerpost/resolver/catalog", "fingerpost/resolver", "fingerpost/configsrc",
		"fingerpost/configsrc/hclfile", "fingerpost/configsrc/seal", "fingerpost/mailer", "fingerpost/api",
		"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term", "github.com/rogpeppe/go-internal/diff"},
	"fingerpost/bench": {"fingerpost/resolver/catalog", "fingerpost/bench/chart", "github.com/HdrHistogram/hdrhistogram-go",
		"github.com/valyala/fasthttp", "github.com/cockroachdb/pebble/v2", // the floor, and the stores of the bare programs
		"golang.org/x/sys/unix"}, // x/sys: renameat2, which package syscall lacks
	"fingerpost/bench/chart": {"gonum.org/v1/plot"},
}

// pebbleRooms are the rooms that may import Pebble: the two stores, and what
// reads a damaged one. pebblefs and archive know its file system only.
var pebbleRooms = []string{"fingerpost/resolver/store", "fingerpost/resolver/ledger", "fingerpost/resolver/ledger/salvage"}

// sole are the libraries that one room alone may import, bench's baselines apart.
var sole = map[string]string{
	"github.com/dgraph-io/ristretto/v2": "fingerpost/resolver",
	"github.com/hashicorp/hcl/v2":       "fingerpost/configsrc/hclfile",
	"filippo.io/age":                    "fingerpost/configsrc/seal",
	"github.com/fsnotify/fsnotify":      "fingerpost/configsrc",
	"github.com/domodwyer/mailyak/v3":   "fingerpost/mailer",
	"github.com/valyala/fasthttp":       "fingerpost/api",
	"github.com/fasthttp/router":        "fingerpost/api",
	"github.com/golang-jwt/jwt/v5":      "fingerpost/api",
	"gonum.org/v1/plot":                 "fingerpost/bench/chart",
}

type goPackage struct {
	ImportPath string
	Imports    []string
	Standard   bool
}

func TestImportPlan(t *testing.T) {
	packages := listPackages(t)
	std := map[string]bool{}
	for _, p := range packages {
		std[p.ImportPath] = p.Standard
	}
	for _, p := range packages {
		if !strings.HasPrefix(p.ImportPath, "fingerpost/") {
			continue
		}
		allowed, known := plan[p.ImportPath]
		if !known {
			t.Errorf("%s is a room that the plan does not have", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !std[imp] && !covered(allowed, imp) {
				t.Errorf("%s imports %s, which the plan does not allow", p.ImportPath, imp)
			}
		}
	}
	for lib, room := range sole {
		for importer, allowed := range plan {
			if importer != room && importer != "fingerpost/bench" && slices.Contains(allowed, lib) {
				t.Errorf("the plan lets %s import %s, which belongs to %s alone", importer, lib, room)
			}
		}
	}
}

// TestPebbleRooms keeps Pebble to the rooms that store something.
func TestPebbleRooms(t *testing.T) {
	for importer, allowed := range plan {
		if slices.Contains(allowed, "github.com/cockroachdb/pebble/v2") && importer != "fingerpost/bench" && !slices.Contains(pebbleRooms, importer) {
			t.Errorf("the plan lets %s import Pebble", importer)
		}
	}
}

// TestTopLevel keeps the top of the tree as its owners fixed it.
func TestTopLevel(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files").Output()
	if err != nil {
		t.Skip("no git checkout: ", err)
	}
	allowed := []string{"cmd", "resolver", "configsrc", "api", "mailer", "projects.d", "bench", "go.mod", "go.sum", "README.md", "LICENSE"}
	for name := range strings.FieldsSeq(string(out)) {
		top, _, _ := strings.Cut(path.Clean(name), "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(allowed, top) {
			t.Errorf("%s does not belong to the top level", top)
		}
	}
}

func covered(allowed []string, imp string) bool {
	for _, a := range allowed {
		inHouse := strings.HasPrefix(a, "fingerpost/")
		if imp == a || !inHouse && strings.HasPrefix(imp, a+"/") {
			return true
		}
	}
	return false
}

func listPackages(t *testing.T) (packages []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-pgo=off", "-deps", "-json=ImportPath,Imports,Standard", "fingerpost/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}
