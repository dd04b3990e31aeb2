//go:build !linux

package configsrc

// yieldToAnswers does nothing: the priority of a single thread cannot be set here.
func yieldToAnswers() {}
