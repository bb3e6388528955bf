package yamldoc

// Kind is the syntactic kind of a value, regardless of the expected one. It is used in the
// text of faults: "must be a list, not a string".
type Kind string

// The kinds of values.
const (
	Bad    Kind = "a fault" // a fault that was already reported
	Null   Kind = "nothing"
	Bool   Kind = "true or false"
	Number Kind = "a number"
	Text   Kind = "a string"
	List   Kind = "a list"
	Map    Kind = "a map"
)

// Position is a position in a file. Line and Column start at 1, and columns count characters.
// Line 0 means the whole file.
type Position struct{ Line, Column int }

// Node is a value with its position.
type Node struct {
	Kind Kind
	At   Position
	Text string // scalars: as written; strings without quotes and escapes
	// Indent is the number of characters between the position of a string in the source and
	// its first character, or -1 if the string is not one contiguous part of one line.
	Indent  int
	Items   []*Node
	Members []Member
}

// Member is a key of a map with its value. A map can contain the same key twice.
type Member struct {
	Key   string
	At    Position
	Value *Node
}
