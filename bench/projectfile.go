package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"fingerpost/resolver/catalog"
)

const (
	hostSuffix  = ".example"
	maxProjects = 1_000_000 // six digits in a slug
)

var (
	adjectives = strings.Fields("amber brisk calm daring early fair gentle humble " +
		"ivory jolly keen lively mellow noble open proud")
	animals = strings.Fields("otter heron lynx badger marten falcon beaver ibex " +
		"raven stoat tern vole wren bison crane dormouse")
)

// makeSlugs names the projects: "brisk-otter-012345", where the digits are the project's number. The ids of domains have
// 45 bits and follow from their names: with this stream, no two of five million domains have the same one. A file with
// such a domain would be refused.
func makeSlugs(projects int) []string {
	r := rand.New(rand.NewPCG(corpusSeed, 0x5108))
	slugs := make([]string, projects)
	for i := range slugs {
		slugs[i] = fmt.Sprintf("%s-%s-%06d", adjectives[r.IntN(len(adjectives))], animals[r.IntN(len(animals))], i)
	}
	return slugs
}

// projectNumber returns the project's number from a name that appendHost made, or -1.
func projectNumber(host []byte) int {
	digits, _ := bytes.CutSuffix(host, []byte(hostSuffix))
	if len(digits) < 6 {
		return -1
	}
	n := 0
	for _, c := range digits[len(digits)-6:] {
		if c < '0' || c > '9' {
			return -1
		}
		n = 10*n + int(c-'0')
	}
	return n
}

// declaredLabel returns the k-th domain of a project, up to the slug: the name itself, a shop, a wildcard, then
// regions.
func declaredLabel(k int) string {
	switch k {
	case 0:
		return ""
	case 1:
		return "shop."
	case 2:
		return "*."
	}
	return "region-" + strconv.Itoa(k) + "."
}

// askedLabel is declaredLabel for a name to ask for: one that the wildcard matches instead of the wildcard.
func askedLabel(k int) string {
	if k == 2 {
		return "blog."
	}
	return declaredLabel(k)
}

// projectText is a project, with words in capitals for what differs.
//
//go:embed project.hcl.tmpl
var projectText string

// projectFile returns the text of one project with the given number of domains, about 2.7 kB with three. The revision
// shows twice in every answer: as digits in the description, and its lowest bit as smsEnabled. An answer in which the
// two disagree was composed of two states.
func projectFile(slug string, domains, revision int) []byte {
	var names strings.Builder
	for k := range domains {
		name, attribute := declaredLabel(k)+slug+hostSuffix, "{}"
		if k == 0 {
			attribute = "{ primary = true }"
		}
		fmt.Fprintf(&names, "  domain %q %s\n", name, attribute)
	}
	return []byte(strings.NewReplacer("SLUG", slug, "TITLE", strings.ReplaceAll(slug, "-", " "),
		"DESCRIPTION", description(slug, revision), "DOMAINS", names.String(), "SMS", fmt.Sprint(revision%2 == 1),
	).Replace(projectText))
}

// description returns the text of a project at a revision: plain ASCII, of the same length at every revision.
func description(slug string, revision int) string {
	return fmt.Sprintf("Storefront and back office of %s, revision %06d", strings.ReplaceAll(slug, "-", " "), revision)
}

// keyFile declares a key.
func keyFile(id, text string, allow ...string) []byte {
	return fmt.Appendf(nil, "key \"bench\" {\n  id    = %q\n  hash  = %q\n  allow = [\"%s\"]\n}\n",
		id, catalog.HashKeyText(text), strings.Join(allow, `", "`))
}
