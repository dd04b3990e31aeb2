package resolver_test

import (
	"fmt"
	"strings"
	"testing"

	"fingerpost/resolver"
	"fingerpost/resolver/catalog"
)

// One long answer pushes out several short ones. Ristretto then evicts a key twice now and then, the second time without
// an answer.
func TestLongAnswersPushOutShortOnes(t *testing.T) {
	t.Parallel()
	r := open(t, resolver.Options{CacheBytes: 20 << 10})
	var files []catalog.FileChange
	for i := range 12 {
		files = append(files, file(fmt.Sprintf("short%d.hcl", i), block(fmt.Sprintf("short%d", i), fmt.Sprintf("short%d.example", i))))
		long := block(fmt.Sprintf("long%d", i), fmt.Sprintf("long%d.example", i))
		text := strings.Repeat("é", catalog.MaxDescriptionLen)
		long.Project.Description = &text
		files = append(files, file(fmt.Sprintf("long%d.hcl", i), long))
	}
	apply(t, r, files...)
	for range 200 {
		for i := range 12 {
			for range 3 {
				resolve(t, r, fmt.Sprintf("short%d.example", i), resolver.Nested)
			}
			resolve(t, r, fmt.Sprintf("long%d.example", i), resolver.Nested)
		}
	}
	r.Settle()
	if r.Metrics().Evictions == 0 {
		t.Error("nothing was evicted")
	}
}
