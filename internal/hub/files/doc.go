// Package files reads, searches and changes files below directories that an operator chose:
// the built-in server "files".
//
// # Roots and paths
//
// A root is an absolute path of a directory; the suffix ":rw" makes it writable. A path in a
// call is absolute and inside a root, or, if there is only one root, relative to it. If roots
// contain each other, the innermost applies. A read-only root inside a writable one is refused,
// because a link or a move could lead into it.
//
// # Guarantees
//
//   - Every access goes through os.Root, so no "..", no symbolic link, and no link created during
//     the call leads out of a root. Links that stay inside a root are followed for reading, and
//     never written through.
//   - Only regular files are opened. Files are opened without blocking and checked again once
//     they are open, so a FIFO, a device or a socket returns an error and does not hang.
//   - A file with several hard links is never read or copied: one of its names may be outside the
//     root, and the kernel does not report them. Replacing it is harmless, since a write creates a
//     new file and renames it, but needs a digest, which cannot be obtained. Copies made with hard
//     links, as by "git clone --local", need a real copy to be used here.
//   - A write is complete or has no effect. It needs the digest of the content that it replaces, so
//     that the work of another writer is not lost unnoticed.
//   - Sizes, counts and depths are limited. Results state what was left out.
//
// # Limitations
//
// The package does not isolate: a mount point below a root is part of the root, and other programs
// may change files at any time. It reads text files only, ignores .gitignore, and does not change
// permissions, owners or links.
package files
