package catalog

// AppendHeaderText appends a text as the value of an HTTP header. It percent-encodes all but printable ASCII, and
// blanks at either end, which receivers drop. It encodes "%" too: two texts never give the same value.
func AppendHeaderText(dst []byte, text string) []byte {
	for i := range len(text) {
		c := text[i]
		if c > ' ' && c < 0x7f && c != '%' || c == ' ' && i > 0 && i < len(text)-1 {
			dst = append(dst, c)
		} else {
			dst = append(dst, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return dst
}
