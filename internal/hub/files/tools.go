package files

import "github.com/callyard/callyard/internal/launch/native"

// Tools returns the tools of the server. Those that change files are included only if a root is
// writable.
func (s *Server) Tools() []native.Tool {
	where := " Allowed directories: " + s.names() + "."
	read := func(title string) []native.Option {
		return []native.Option{native.Title(title), native.ReadOnly(), native.Idempotent(), native.OpenWorld(false)}
	}
	change := func(title string, destructive bool) []native.Option {
		return []native.Option{native.Title(title), native.Destructive(destructive), native.OpenWorld(false)}
	}
	tools := []native.Tool{
		native.Must(native.Typed("read", "Reads a text file: its content, or lines of it, and the digest that write and edit take. Files have at most 10 MiB; a call returns at most 2,000 lines and 256 KiB."+where, s.read, read("Read a file")...)),
		native.Must(native.Typed("list", "Lists the entries of a directory with type, size and time of the last change, at most 1,000."+where, s.list, read("List a directory")...)),
		native.Must(native.Typed("tree", "Draws the tree of a directory, at most 2,000 entries. Symbolic links are marked with @ and not followed."+where, s.tree, read("Show a directory tree")...)),
		native.Must(native.Typed("glob", "Finds files by a pattern of their paths, the most recently changed first, at most 1,000."+where, s.glob, read("Find files")...)),
		native.Must(native.Typed("grep", "Finds lines by a regular expression in text files of a directory, or in one file. At most 200 lines are returned and 64 MiB are read."+where, s.grep, read("Search in files")...)),
		native.Must(native.Typed("info", "Tells whether a path exists, and its type, size, time of the last change and permissions."+where, s.info, read("Describe a path")...)),
	}
	writable := false
	for _, r := range s.roots {
		writable = writable || r.writable
	}
	if !writable {
		return tools
	}
	return append(tools,
		native.Must(native.Typed("write", "Writes a text file, or appends to one, in a writable directory. To replace a file, read it first and give its digest: the call fails if the file has changed since."+where, s.writeFile, change("Write a file", true)...)),
		native.Must(native.Typed("edit", "Replaces an exact text in a file in a writable directory. The text must be in the file once, unless replace_all is true."+where, s.edit, change("Edit a file", true)...)),
		native.Must(native.Typed("copy", "Copies a file of at most 100 MiB to a path in a writable directory where nothing is."+where, s.copyFile, change("Copy a file", false)...)),
		native.Must(native.Typed("move", "Moves or renames a file or directory in a writable directory. Nothing may be at the destination."+where, s.move, change("Move a file", true)...)),
		native.Must(native.Typed("delete", "Deletes a file, a symbolic link or an empty directory in a writable directory; with recursive, a directory with its content of at most 10,000 entries. It cannot be undone."+where, s.remove, change("Delete a file", true)...)),
		native.Must(native.Typed("create_dir", "Creates a directory in a writable directory, with its missing parent directories. It succeeds if the directory exists."+where, s.createDir, append(change("Create a directory", false), native.Idempotent())...)),
	)
}
