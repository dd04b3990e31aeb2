package template

import (
	"regexp"
	"strings"

	"fingerpost/resolver/catalog"
)

// colourProperties may have a label as their whole value.
var colourProperties = map[string]bool{"color": true, "background-color": true, "border-color": true}

const inStyleAttribute = `a style attribute: only a label of the project can, as the whole value of color, ` +
	`background-color or border-color, such as style="color: {{label.brand_colour}}"`

// style checks the declarations of a style attribute that hold placeholders. What is filled in is a colour and nothing
// else, see isColour, so it cannot end what it stands in, wherever the browser finds the ends.
func (m *markup) style(at, end int) {
	for ; m.has(end); m.next++ {
		h := &m.holes[m.next]
		declaration := m.src[at:h.start]
		property, before, _ := strings.Cut(declaration[strings.LastIndexByte(declaration, ';')+1:], ":")
		h.colour = colourProperties[strings.ToLower(strings.Trim(property, cssBlanks))] &&
			strings.Trim(before, cssBlanks) == "" && m.lastLabel(h, end, ';')
		if !h.colour {
			m.refuseOne(h, inStyleAttribute)
		}
		at = h.end
	}
}

// wholeColour notes a label that is the whole value of an attribute.
func (m *markup) wholeColour(at, end int) {
	h := &m.holes[m.next]
	h.colour = strings.Trim(m.src[at:h.start], cssBlanks) == "" && m.lastLabel(h, end, 0)
}

// lastLabel reports whether a placeholder is a label, and only blanks follow it before end or the byte stop.
func (m *markup) lastLabel(h *hole, end int, stop byte) bool {
	rest := strings.TrimLeft(m.src[h.end:end], cssBlanks)
	return h.op == Value && strings.HasPrefix(h.name, catalog.LabelVariable) && (rest == "" || rest[0] == stop)
}

const cssBlanks = " \t\r\n\f"

var hexColour = regexp.MustCompile(`^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$`)

// isColour reports whether a value is #rgb, #rrggbb or the name of a colour in CSS.
func isColour(value string) bool {
	return hexColour.MatchString(value) || colourNames[strings.ToLower(value)]
}

// colourNames are the named colours of CSS Color 4 (6.1).
var colourNames = func() map[string]bool {
	names := map[string]bool{}
	for name := range strings.FieldsSeq(`
		aliceblue antiquewhite aqua aquamarine azure beige bisque black blanchedalmond blue blueviolet brown burlywood
		cadetblue chartreuse chocolate coral cornflowerblue cornsilk crimson cyan darkblue darkcyan darkgoldenrod darkgray
		darkgreen darkgrey darkkhaki darkmagenta darkolivegreen darkorange darkorchid darkred darksalmon darkseagreen
		darkslateblue darkslategray darkslategrey darkturquoise darkviolet deeppink deepskyblue dimgray dimgrey dodgerblue
		firebrick floralwhite forestgreen fuchsia gainsboro ghostwhite gold goldenrod gray green greenyellow grey honeydew
		hotpink indianred indigo ivory khaki lavender lavenderblush lawngreen lemonchiffon lightblue lightcoral lightcyan
		lightgoldenrodyellow lightgray lightgreen lightgrey lightpink lightsalmon lightseagreen lightskyblue lightslategray
		lightslategrey lightsteelblue lightyellow lime limegreen linen magenta maroon mediumaquamarine mediumblue
		mediumorchid mediumpurple mediumseagreen mediumslateblue mediumspringgreen mediumturquoise mediumvioletred
		midnightblue mintcream mistyrose moccasin navajowhite navy oldlace olive olivedrab orange orangered orchid
		palegoldenrod palegreen paleturquoise palevioletred papayawhip peachpuff peru pink plum powderblue purple
		rebeccapurple red rosybrown royalblue saddlebrown salmon sandybrown seagreen seashell sienna silver skyblue
		slateblue slategray slategrey snow springgreen steelblue tan teal thistle tomato turquoise violet wheat white
		whitesmoke yellow yellowgreen`) {
		names[name] = true
	}
	return names
}()
