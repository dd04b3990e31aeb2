package resolver

// Settle waits until the caches have processed all Sets, for tests that count.
func (r *Resolver) Settle() {
	r.known.Wait()
	r.unknown.Wait()
}

// RaceEnabled is set under the race detector, which makes sync.Pool drop items at random.
var RaceEnabled = raceEnabled

// DataDir returns the store's directory.
func (r *Resolver) DataDir() string { return r.options.DataDir }
