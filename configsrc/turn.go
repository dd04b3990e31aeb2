package configsrc

import (
	"context"
	"errors"

	"fingerpost/configsrc/edits"
)

// A turn is a call that runs on the goroutine that looks, between two looks.
type turn struct {
	do   func(context.Context) error
	done chan error
}

// turns pass turns to the goroutine that looks.
type turns chan turn

// askFor runs do, and waits for its result as long as ctx lets it.
func (t turns) askFor(ctx context.Context, do func(context.Context) error) error {
	asked := turn{do, make(chan error, 1)}
	select {
	case t <- asked:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-asked.done:
		return err
	case <-ctx.Done():
		return errors.Join(errors.New("the reload goes on"), ctx.Err())
	}
}

// insistOn runs do, and waits for its result once it has begun.
func (t turns) insistOn(ctx context.Context, do func(running context.Context) error) error {
	asked := turn{do, make(chan error, 1)}
	select {
	case t <- asked:
		return <-asked.done // even if ctx is done: the branch may have moved already, and only the result tells
	case <-ctx.Done():
		return edits.Busy("the files are being reloaded")
	}
}
