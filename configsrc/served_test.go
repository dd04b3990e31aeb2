package configsrc_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"

	"fingerpost/cmd/testrig"
	"fingerpost/configsrc"
	"fingerpost/resolver/catalog"
)

// An eagerSink calls asked between the moment in which a project is served and the end of Apply.
type eagerSink struct {
	configsrc.Sink
	asked func(project catalog.UUID)
}

func (s *eagerSink) Apply(c *catalog.Change) (uint64, error) {
	generation, err := s.Sink.Apply(c)
	for _, f := range c.Files {
		if f.Declared != nil {
			go s.asked(f.Declared.Projects[0].Project.UUID)
		}
	}
	for range 100 {
		runtime.Gosched() // so that the question comes before the end of Apply, most times
	}
	return generation, err
}

// Whoever is served a project finds its file, also in the moment in which the file is accepted.
func TestServedIsKnown(t *testing.T) {
	testrig.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	r := memoryResolver(t)
	answers := make(chan error, 1)
	sink := &eagerSink{Sink: r}
	n := newNode(t, dir, nodeOptions{resolver: r, sink: sink, loadOnly: true})
	sink.asked = func(project catalog.UUID) {
		_, err := n.source.Block(project)
		answers <- err
	}
	n.run()
	for i := range 20 {
		slug := fmt.Sprintf("p%d", i)
		replace(t, filepath.Join(dir, slug+".hcl"), project(slug))
		if err := <-answers; err != nil {
			t.Errorf("project %d: %v", i, err)
		}
	}
}
