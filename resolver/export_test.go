package resolver

// Settle waits until the caches have taken in what was put into them, for tests that count.
func (r *Resolver) Settle() {
	r.known.Wait()
	r.unknown.Wait()
}

// RaceEnabled is set where the race detector makes sync.Pool drop things at random.
var RaceEnabled = raceEnabled

// DataDir is where the store is.
func (r *Resolver) DataDir() string { return r.options.DataDir }
