package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"fingerpost/resolver/catalog"
)

// corpusSeed is the seed of every corpus and load.
const corpusSeed = 1

// corpusParams determine every byte of a corpus except its key.
type corpusParams struct {
	Projects int `json:"projects"`
	Domains  int `json:"domains"`
}

func (p corpusParams) check() error {
	if p.Projects < 1 || p.Projects > maxProjects {
		return fmt.Errorf("-projects is %d, it must be from 1 to %d", p.Projects, maxProjects)
	}
	if p.Domains < p.Projects || p.Domains%p.Projects != 0 {
		return fmt.Errorf("-domains is %d, it must be a multiple of -projects (%d)", p.Domains, p.Projects)
	}
	return nil
}

func (p corpusParams) perProject() int { return p.Domains / p.Projects }

func (p corpusParams) String() string {
	return fmt.Sprintf("%d-%d", p.Projects, p.Domains)
}

// A corpus is a config folder of generated projects, with what is needed to ask about them. Safe for concurrent use.
type corpus struct {
	corpusParams
	config string // the folder
	key    string // the text of a key that may resolve, read and write
	slugs  []string
	asked  []string     // askedLabel by number of the domain in its project
	last   atomic.Int64 // the last revision that a project was given, see projectFile
}

// newCorpus returns a corpus in a config folder that is yet to be written.
func newCorpus(config string, p corpusParams) *corpus {
	c := &corpus{corpusParams: p, config: config, slugs: makeSlugs(p.Projects)}
	for k := range p.perProject() {
		c.asked = append(c.asked, askedLabel(k))
	}
	return c
}

const (
	metaFile  = "corpus.json"
	keysFile  = "keys.hcl"
	perFolder = 1000 // files in one sub-folder
)

// corpusMeta is stored next to a generated config folder.
type corpusMeta struct {
	Params  corpusParams `json:"params"`
	Version int          `json:"version"`
	Key     string       `json:"key"`
}

// corpusVersion changes with the generator, so that older corpora are generated again.
const corpusVersion = 5

// openCorpus returns the corpus with these parameters below dir. It generates the corpus unless it exists and was not
// edited.
func openCorpus(dir string, p corpusParams) (*corpus, error) {
	c := newCorpus(filepath.Join(dir, "projects.d"), p)
	var meta corpusMeta
	b, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err == nil && json.Unmarshal(b, &meta) == nil && meta.Params == p && meta.Version == corpusVersion {
		c.key = meta.Key
		return c, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("remove the old corpus: %w", err)
	}
	var id string
	c.key, id = catalog.NewKeyText()
	if err := c.write(id); err != nil {
		return nil, fmt.Errorf("write the corpus: %w", err)
	}
	b, err = json.Marshal(corpusMeta{Params: p, Version: corpusVersion, Key: c.key})
	if err != nil {
		return nil, fmt.Errorf("describe the corpus: %w", err)
	}
	// The description is written last, so that an interrupted generation does not look complete.
	if err := os.WriteFile(filepath.Join(dir, metaFile), b, 0o600); err != nil {
		return nil, fmt.Errorf("describe the corpus: %w", err)
	}
	return c, nil
}

func (c *corpus) write(keyID string) error {
	for i := 0; i < c.Projects; i += perFolder {
		if err := os.MkdirAll(filepath.Dir(c.path(i)), 0o755); err != nil {
			return err
		}
	}
	keys := keyFile(keyID, c.key, "resolve", "read", "write")
	if err := os.WriteFile(filepath.Join(c.config, keysFile), keys, 0o644); err != nil {
		return err
	}
	const writers = 4
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := w; i < c.Projects && errs[w] == nil; i += writers {
				errs[w] = os.WriteFile(c.path(i), c.file(i, 0), 0o644)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// path is the file of project i.
func (c *corpus) path(i int) string {
	return filepath.Join(c.config, filepath.FromSlash(c.relative(i)))
}

// relative is path below the config folder, slash-separated.
func (c *corpus) relative(i int) string {
	return fmt.Sprintf("team-%03d/%s.hcl", i/perFolder, c.slugs[i])
}

// file is the text of project i at a revision.
func (c *corpus) file(i, revision int) []byte {
	return projectFile(c.slugs[i], c.perProject(), revision)
}

// appendHost appends the n-th name that can be asked, n < Domains. Project n/perProject answers it.
func (c *corpus) appendHost(dst []byte, n int) []byte {
	per := c.perProject()
	dst = append(dst, c.asked[n%per]...)
	dst = append(dst, c.slugs[n/per]...)
	return append(dst, hostSuffix...)
}

// edited says that files will differ from the generated ones: the next run generates the corpus again.
func (c *corpus) edited() error {
	err := os.Remove(filepath.Join(filepath.Dir(c.config), metaFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// save gives a project a new revision and returns it.
func (c *corpus) save(project int, how saver) (int, error) {
	revision := int(c.last.Add(1))
	return revision, how.save(c.path(project), c.file(project, revision))
}

// scheduleLen is how many questions a schedule holds before it repeats.
const scheduleLen = 1 << 19

// zipfExponent is the exponent of the Zipf distribution of hits.
const zipfExponent = 1.01

// zipfSchedule draws from names, with the popular ones scattered over all of them: in order of rank, the popular names
// would all belong to the first files.
func zipfSchedule(names []uint32) []uint32 {
	r := rand.New(rand.NewPCG(corpusSeed, 0x21bf))
	z := rand.NewZipf(r, zipfExponent, 1, uint64(len(names)-1))
	schedule := make([]uint32, scheduleLen)
	for i := range schedule {
		schedule[i] = names[z.Uint64()]
	}
	return schedule
}

// names returns size of the names 0 … n-1, spread evenly over all of them, in random order.
func names(n, size int) []uint32 {
	all := make([]uint32, size)
	for i := range all {
		all[i] = uint32(i * n / size)
	}
	r := rand.New(rand.NewPCG(corpusSeed, 0x5ca7))
	r.Shuffle(size, func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// zipf is a schedule over all names of the corpus.
func (c *corpus) zipf() []uint32 { return zipfSchedule(c.names()) }

// names returns all names of the corpus, in random order.
func (c *corpus) names() []uint32 { return names(c.Domains, c.Domains) }
