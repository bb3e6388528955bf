// Package files reads, searches and changes files below directories that an operator chose:
// the built-in server "files".
//
// # Roots and paths
//
// A root is an absolute path of a directory; the suffix ":rw" makes it writable. A path in a
// call is absolute and inside a root, or, where there is one root, relative to it. Of roots
// that contain each other the innermost counts; a read-only root inside a writable one is
// refused, because a link or a move could lead into it.
//
// # What it promises
//
//   - Every access goes through os.Root: neither "..", a symbolic link, nor one that is put in
//     place during the call leads out of a root. Links that stay inside a root are followed
//     for reading, and never written through.
//   - Only regular files are opened. Files are opened without blocking and looked at again once
//     they are open, so a FIFO, a device or a socket gives an error and does not hang.
//   - A file with several hard links is neither read nor copied: one of its names may be
//     outside, and the kernel does not tell. Replacing it is harmless, since a write makes a
//     new file and renames it, but needs a digest, which cannot be had. Copies made with hard
//     links, as by "git clone --local", need a copy of their own to be used here.
//   - A write is complete or has no effect, and needs the digest of what it replaces, so that
//     nothing that another writer did is lost unnoticed.
//   - Sizes, counts and depths are bounded; what is left out is said.
//
// # What it refuses
//
// It does not isolate: a mount point below a root is part of the root, and other programs may
// change files at any time. It opens no file that is not text for reading, knows no
// .gitignore, and changes no permissions, owners or links.
package files
