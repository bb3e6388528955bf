package yamldoc

// Kind is what a value looks like, before anybody asks what it should be. Its text
// stands in faults: "must be a list, not a text".
type Kind string

// The kinds of values.
const (
	Bad    Kind = "a fault" // reported already
	Null   Kind = "nothing"
	Bool   Kind = "true or false"
	Number Kind = "a number"
	Text   Kind = "a string"
	List   Kind = "a list"
	Map    Kind = "a map"
)

// Position is a place in a file. Line and Column count from 1, columns in characters;
// line 0 is the file as a whole.
type Position struct{ Line, Column int }

// Node is one value with its place.
type Node struct {
	Kind Kind
	At   Position
	Text string // scalars: as written; texts without quotes and escapes
	// Indent is the number of characters in the source that stand before a text in its
	// first line, or -1 where the text is not one piece of one line.
	Indent  int
	Items   []*Node
	Members []Member
}

// Member is one key of a map with its value. A map can have the same key twice.
type Member struct {
	Key   string
	At    Position
	Value *Node
}
