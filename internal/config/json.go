package config

import (
	"bytes"
	"fmt"
	"sort"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

// parseJSON parses JSON, with comments and trailing commas, into nodes. It returns nil if the text
// cannot be parsed and reports the reason in faults. The text of a variable has no lines: at is
// the place of the whole text, and path is its key.
func parseJSON(at place, path string, data []byte, faults *report) *node {
	j := &jsonReader{at: at, lines: at.layer == layerFile, data: data}
	if offset := j.tooDeep(); offset >= 0 {
		faults.add(j.place(offset), path, "the JSON is nested more than %d levels deep; reduce the nesting.", maxDepth)
		return nil
	}
	// A comment may end the file without a line break.
	value, err := hujson.Parse(append(data[:len(data):len(data)], '\n'))
	if err != nil {
		// The message of the parser can repeat values, which may be secret. Take only the position
		// from it.
		var line, column int
		if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
			line, column = 1, 1
		}
		faults.add(j.place(j.offset(line, column)), path, "this is not valid JSON%s; check the quotes, commas and brackets at and before this place.", j.found(line, column))
		return nil
	}
	return j.convert(&value)
}

type jsonReader struct {
	at    place
	lines bool
	data  []byte
	// starts holds the offset of each line. It is filled on first use.
	starts []int
	// counted is the last offset given to place, and runes the number of runes before it on its line.
	counted, runes int
}

func (j *jsonReader) lineStarts() []int {
	if j.starts == nil {
		j.starts = []int{0}
		for i, c := range j.data {
			if c == '\n' {
				j.starts = append(j.starts, i+1)
			}
		}
	}
	return j.starts
}

// offset converts a line and column of the parser, in bytes, to an offset.
func (j *jsonReader) offset(line, column int) int {
	starts := j.lineStarts()
	if line < 1 || line > len(starts) {
		return len(j.data)
	}
	return min(starts[line-1]+max(column-1, 0), len(j.data))
}

// found names the unexpected character, if that helps the reader.
func (j *jsonReader) found(line, column int) string {
	offset := j.offset(line, column)
	if offset >= len(bytes.TrimRight(j.data, " \t\r\n")) {
		return ": it ends too early"
	}
	switch c := j.data[offset]; c {
	case '}', ']', ',', ':', '\'', '{', '[', '/':
		return fmt.Sprintf(": unexpected %c", c)
	}
	return ""
}

// place returns the line and column of an offset. Most offsets are after the previous one. Counting
// from there is fast also in a file of one long line, as programs write it.
func (j *jsonReader) place(offset int) place {
	if !j.lines {
		return j.at
	}
	starts := j.lineStarts()
	i := sort.SearchInts(starts, offset+1) - 1
	offset = min(offset, len(j.data))
	from := j.counted
	if from < starts[i] || from > offset {
		from, j.runes = starts[i], 0
	}
	j.counted, j.runes = offset, j.runes+utf8.RuneCount(j.data[from:offset])
	p := j.at
	p.line, p.column = i+1, 1+j.runes
	return p
}

// tooDeep returns the offset at which the nesting exceeds the limit, or -1.
func (j *jsonReader) tooDeep() int {
	depth := 0
	for i := 0; i < len(j.data); i++ {
		switch j.data[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		case '"':
			for i++; i < len(j.data) && j.data[i] != '"'; i++ {
				if j.data[i] == '\\' {
					i++
				}
			}
		case '/':
			end := ""
			switch rest := j.data[i:]; {
			case bytes.HasPrefix(rest, []byte("//")):
				end = "\n"
			case bytes.HasPrefix(rest, []byte("/*")):
				end = "*/"
				i += 2
			default:
				continue
			}
			n := bytes.Index(j.data[min(i, len(j.data)):], []byte(end))
			if n < 0 {
				return -1
			}
			i += n + len(end) - 1
		}
	}
	return -1
}

func (j *jsonReader) convert(v *hujson.Value) *node {
	n := &node{at: j.place(v.StartOffset)}
	switch value := v.Value.(type) {
	case *hujson.Object:
		n.kind = yamldoc.Map
		for i := range value.Members {
			m := &value.Members[i]
			key, _ := m.Name.Value.(hujson.Literal)
			n.members = append(n.members, member{key: key.String(), at: j.place(m.Name.StartOffset), value: j.convert(&m.Value)})
		}
	case *hujson.Array:
		n.kind = yamldoc.List
		for i := range value.Elements {
			n.items = append(n.items, j.convert(&value.Elements[i]))
		}
	case hujson.Literal:
		n.text = value.String()
		switch value.Kind() {
		case 'n':
			n.kind = yamldoc.Null
		case 't', 'f':
			n.kind = yamldoc.Bool
		case '0':
			n.kind = yamldoc.Number
		default:
			n.kind = yamldoc.Text
		}
	}
	return n
}
