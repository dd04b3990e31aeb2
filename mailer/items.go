package mailer

// An item is a mail that waits for an attempt: all that is kept of it in memory. Times are Unix milliseconds.
type item struct {
	id      int64
	at      int64 // when the next attempt is due, or expires where that is earlier
	expires int64
}

func byTime(a, b *item) bool   { return a.at < b.at }
func byExpiry(a, b *item) bool { return a.expires < b.expires }

// items is a heap, the least first.
type items struct {
	list []item
	less func(a, b *item) bool
}

func (h *items) len() int  { return len(h.list) }
func (h *items) top() item { return h.list[0] }

func (h *items) push(it item) {
	h.list = append(h.list, it)
	for i := len(h.list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h.less(&h.list[i], &h.list[parent]) {
			return
		}
		h.list[i], h.list[parent] = h.list[parent], h.list[i]
		i = parent
	}
}

func (h *items) pop() item {
	first, last := h.list[0], len(h.list)-1
	h.list[0] = h.list[last]
	h.list = h.list[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if right := child + 1; right < last && h.less(&h.list[right], &h.list[child]) {
			child = right
		}
		if !h.less(&h.list[child], &h.list[i]) {
			break
		}
		h.list[i], h.list[child] = h.list[child], h.list[i]
		i = child
	}
	if cap(h.list) > 1024 && len(h.list) < cap(h.list)/4 {
		h.list = append(make([]item, 0, cap(h.list)/2), h.list...)
	}
	return first
}
