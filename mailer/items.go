package mailer

import (
	"container/heap"

	"fingerpost/resolver/trace"
)

// An item is a queued mail: all that stays in memory of it. Times are Unix milliseconds.
type item struct {
	id      int64
	at      int64 // when the next attempt is due, or expires if that is earlier
	expires int64
	cause   *trace.Span // of the send that led to it, see trace.Span.Cause; nil: it is not traced
}

func byTime(a, b *item) bool   { return a.at < b.at }
func byExpiry(a, b *item) bool { return a.expires < b.expires }

// items is a min-heap for container/heap.
type items struct {
	list []item
	less func(a, b *item) bool
}

func (h *items) Len() int           { return len(h.list) }
func (h *items) Less(i, j int) bool { return h.less(&h.list[i], &h.list[j]) }
func (h *items) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *items) Push(it any)        { h.list = append(h.list, it.(item)) }

// Pop also frees memory when the queue has become short.
func (h *items) Pop() any {
	last := len(h.list) - 1
	it := h.list[last]
	h.list = h.list[:last]
	if cap(h.list) > 1024 && last < cap(h.list)/4 {
		h.list = append(make([]item, 0, cap(h.list)/2), h.list...)
	}
	return it
}

func (h *items) top() item    { return h.list[0] }
func (h *items) push(it item) { heap.Push(h, it) }
func (h *items) pop() item    { return heap.Pop(h).(item) }
