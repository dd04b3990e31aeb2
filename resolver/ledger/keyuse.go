package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A KeyUse is what the ledger knows of an API key.
type KeyUse struct {
	KeyID    string
	Created  time.Time // when the service first saw the key, to the microsecond
	LastUsed time.Time // to the minute; zero: never
}

func appendKeyUse(dst []byte, u *KeyUse) []byte {
	e := encoder{dst}
	e.byte(mailVersion)
	e.micros(u.Created)
	e.maybe(u.LastUsed)
	return e.b
}

func decodeKeyUse(key, rec []byte) (u KeyUse, err error) {
	d, err := mailDecoder(rec)
	if err != nil {
		return u, err
	}
	u = KeyUse{KeyID: string(key[1:]), Created: d.micros(), LastUsed: d.maybe()}
	return u, d.err()
}

// KeyUses lists the uses of all keys, by id.
func (l *Ledger) KeyUses() (uses []KeyUse, err error) {
	err = l.scan(under(prefixKeyUse), func(key, rec []byte) error {
		u, err := decodeKeyUse(key, rec)
		uses = append(uses, u)
		return err
	})
	return uses, err
}

// SetKeyUses stores the uses of keys and forgets those of others, in one batch. Unlike mail it has no turn: there is
// one writer.
func (l *Ledger) SetKeyUses(uses []KeyUse, forget []string) error {
	err := l.commit(func(b *pebble.Batch) (err error) {
		for i := range uses {
			err = errors.Join(err, b.Set(appendTextKey(nil, prefixKeyUse, uses[i].KeyID), appendKeyUse(nil, &uses[i]), nil))
		}
		for _, id := range forget {
			err = errors.Join(err, b.Delete(appendTextKey(nil, prefixKeyUse, id), nil))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("store the uses of keys: %w", err)
	}
	return nil
}
