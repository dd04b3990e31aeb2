package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"fingerpost/resolver/catalog"

	"github.com/cockroachdb/pebble/v2"
)

// TestUpgrade opens a store of an older format, with an interrupted upgrade: what the files declare is gone, and has
// its times again once the files declare it.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, format := range []uint64{formatVersion - 1} {
		dir := filepath.Join(t.TempDir(), "data")
		reopen := func(s *Store) *Store {
			t.Helper()
			if s != nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s := reopen(nil)
		change := manyDomains("old", 5)
		change.Files[0].Bytes = []byte("good")
		if _, err := s.Apply(change, 1, midnight, func(*Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		b := s.db.NewBatch()
		err := s.scan([]byte{prefixDomain}, func(key, value []byte) error {
			value = bytes.Clone(value)
			value[0] = recordVersion - 1
			return b.Set(key, value, nil)
		})
		early := newRecord(catalog.DeriveDomainUUID(catalog.DeriveProjectUUID("crowd"), "n6.example")) // kept by an earlier upgrade
		early[0] = recordVersion - 1
		setRecordTimes(early, midnight, midnight)
		err = errors.Join(err, b.Set(timesKey(early), early, nil))
		if err := errors.Join(err, b.Set(keyFormat, binary.AppendUvarint(nil, format), nil), b.Commit(pebble.Sync)); err != nil {
			t.Fatal(err)
		}
		if err := s.keepTimes(prefixProject); err != nil { // the upgrade begins, and is interrupted
			t.Fatal(err)
		}
		s = reopen(reopen(s))
		if v, _, err := s.uint(keyFormat); err != nil || v != formatVersion || s.Counts() != (Counts{}) || s.Generation() != 1 {
			t.Errorf("format %d, %v; %+v, generation %d", v, err, s.Counts(), s.Generation())
		}
		if row, err := s.File("crowd.hcl"); row != nil || err != nil {
			t.Errorf("the file would not be parsed: %+v, %v", row, err)
		}
		if good, err := s.LastGood("crowd.hcl"); string(good) != "good" || err != nil {
			t.Errorf("the last accepted bytes are %q, %v", good, err)
		}
		if err := s.Verify(); err != nil {
			t.Error(err)
		}
		change = manyDomains("new", 7)
		if _, err := s.Apply(change, 1, midnight.Add(time.Hour), func(*Effect) error { return nil }); err != nil {
			t.Fatal(err)
		}
		for i := range 7 {
			var d catalog.Domain
			want := midnight
			if i == 5 {
				want = midnight.Add(time.Hour)
			}
			found, err := s.Domain(&d, fmt.Sprintf("n%d.example", i))
			if !found || err != nil || !d.CreatedAt.Equal(want) || !d.UpdatedAt.Equal(want) {
				t.Errorf("format %d: %v, %v, %+v, want times %v", format, found, err, d, want)
			}
		}
		var p catalog.ProjectConfig
		if found, err := s.Project(&p, change.Files[0].Declared.Projects[0].Project.ID); !found || err != nil || !p.Project.CreatedAt.Equal(midnight) {
			t.Errorf("%v, %v, %+v", found, err, p.Project)
		}
		err = s.scan([]byte{prefixTimes}, func(key, _ []byte) error { return fmt.Errorf("%q is left", key) })
		if err = errors.Join(err, s.Close()); err != nil {
			t.Error(err)
		}
	}
}
