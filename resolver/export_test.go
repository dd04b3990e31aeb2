package resolver

// Settle waits until the caches have taken in what was put into them, for tests that count.
func (r *Resolver) Settle() {
	r.arrive()
	r.known.Wait()
	r.unknown.Wait()
}

// RaceEnabled is set where the race detector makes sync.Pool drop things at random.
var RaceEnabled = raceEnabled

// DataDir is where the store is.
func (r *Resolver) DataDir() string { return r.options.DataDir }

// FrontAnswers counts the answers that the front holds, and those of them that ristretto has no more.
func (r *Resolver) FrontAnswers() (held, strays int) {
	answers := map[*Answer]bool{}
	for i := range r.front.near {
		answers[r.front.near[i].answer.Load()] = true
	}
	for i := range r.front.far {
		answers[r.front.far[i].Load()] = true
	}
	delete(answers, nil)
	for a := range answers {
		if kept, ok := r.known.Get(cacheKey(a.hash, a.form)); !ok || kept != a {
			strays++
		}
	}
	return len(answers), strays
}
