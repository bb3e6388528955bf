package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/callyard/callyard/internal/launch/native"
)

type (
	writeArguments struct {
		Path    string `json:"path" jsonschema:"Path of the file. Its directory must exist."`
		Content string `json:"content" jsonschema:"The whole new content, or the text to append."`
		Digest  string `json:"digest,omitempty" jsonschema:"Digest of the file as read returned it. Required when the file exists."`
		Mode    string `json:"mode,omitempty" jsonschema:"overwrite, which is the default, or append."`
	}
	editArguments struct {
		Path       string `json:"path" jsonschema:"Path of the file."`
		Old        string `json:"old_string" jsonschema:"The text to replace, exactly as in the file. It must be in the file once, unless replace_all is true."`
		New        string `json:"new_string" jsonschema:"The text to put in its place."`
		Digest     string `json:"digest,omitempty" jsonschema:"Digest of the file as read returned it. If given, the edit fails when the file has changed since."`
		ReplaceAll bool   `json:"replace_all,omitempty" jsonschema:"If true, every occurrence is replaced."`
	}
	changed struct {
		Path         string `json:"path"`
		Digest       string `json:"digest" jsonschema:"SHA-256 of the new content in hexadecimal."`
		Size         int    `json:"size" jsonschema:"New size in bytes."`
		Replacements int    `json:"replacements,omitempty" jsonschema:"Number of occurrences that were replaced."`
	}
)

// change waits for its turn to change files, so that no other call of this server interferes
// between the check of a digest and the replacement of the file.
func (s *Server) change(ctx context.Context) (done func(), err error) {
	select {
	case s.write <- struct{}{}:
		return func() { <-s.write }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// findWritable returns a place in a writable root other than the root itself.
func (s *Server) findWritable(path string) (place, error) {
	p, err := s.find(path)
	switch {
	case err != nil:
		return place{}, err
	case !p.writable:
		return place{}, fmt.Errorf("%s is in a read-only directory; allowed directories: %s", clip(p.shown), s.names())
	case p.name == ".":
		return place{}, fmt.Errorf("%s is a root and cannot be changed itself; name something inside it", clip(p.shown))
	}
	return p, nil
}

func (s *Server) writeFile(ctx context.Context, _ *native.Call, in writeArguments) (changed, error) {
	p, err := s.findWritable(in.Path)
	if err != nil {
		return changed{}, err
	}
	switch {
	case in.Mode != "" && in.Mode != "overwrite" && in.Mode != "append":
		return changed{}, fmt.Errorf("there is no mode %.30q; use overwrite or append", in.Mode)
	case !utf8.ValidString(in.Content):
		return changed{}, errors.New("the content is not UTF-8")
	}
	done, err := s.change(ctx)
	if err != nil {
		return changed{}, err
	}
	defer done()
	content, perm := []byte(in.Content), fs.FileMode(0o644)
	if exists, err := p.exists(); err != nil {
		return changed{}, err
	} else if exists {
		old, info, err := p.current(ctx, in.Digest, true)
		if err != nil {
			return changed{}, err
		}
		perm = info.Mode().Perm()
		if in.Mode == "append" {
			content = append(old, content...)
		}
	} else if in.Digest != "" {
		return changed{}, fmt.Errorf("there is no file %s, so it cannot have the digest; omit the digest to create it", clip(p.shown))
	}
	return p.replace(content, perm)
}

func (s *Server) edit(ctx context.Context, _ *native.Call, in editArguments) (changed, error) {
	p, err := s.findWritable(in.Path)
	if err != nil {
		return changed{}, err
	}
	switch {
	case in.Old == "":
		return changed{}, errors.New("old_string is empty; use write for a new file")
	case in.Old == in.New:
		return changed{}, errors.New("old_string and new_string are equal")
	case !utf8.ValidString(in.New):
		return changed{}, errors.New("new_string is not UTF-8")
	}
	done, err := s.change(ctx)
	if err != nil {
		return changed{}, err
	}
	defer done()
	content, info, err := p.current(ctx, in.Digest, false)
	if err != nil {
		return changed{}, err
	}
	if !isText(content) {
		return changed{}, fmt.Errorf("%s is not UTF-8 text and cannot be edited", clip(p.shown))
	}
	from, to := []byte(in.Old), []byte(in.New)
	if bytes.Contains(content, []byte("\r\n")) && !bytes.Contains(content, from) { // models write \n
		from, to = carriageReturns(in.Old), carriageReturns(in.New)
	}
	n := bytes.Count(content, from)
	switch {
	case n == 0:
		return changed{}, fmt.Errorf("old_string is not in %s; read the file and copy the text exactly", clip(p.shown))
	case n > 1 && !in.ReplaceAll:
		return changed{}, fmt.Errorf("old_string is in %s %d times, first in the lines %s; add text around it, or set replace_all", clip(p.shown), n, lineNumbers(content, from))
	case len(content)+n*(len(to)-len(from)) > maxFile:
		return changed{}, p.tooLarge(int64(len(content) + n*(len(to)-len(from))))
	}
	r, err := p.replace(bytes.ReplaceAll(content, from, to), info.Mode().Perm())
	r.Replacements = n
	return r, err
}

func carriageReturns(text string) []byte {
	return []byte(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n"))
}

// lineNumbers lists the lines of the first five occurrences.
func lineNumbers(content, text []byte) string {
	var all []string
	line := 1
	for range 5 {
		i := bytes.Index(content, text)
		if i < 0 {
			break
		}
		line += bytes.Count(content[:i], []byte("\n"))
		all = append(all, fmt.Sprint(line))
		line += bytes.Count(text, []byte("\n"))
		content = content[i+len(text):]
	}
	return strings.Join(all, ", ")
}

// exists reports whether the place exists. A symbolic link is an error, because a write would
// replace the link with a file.
func (p place) exists() (bool, error) {
	info, err := p.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, p.fault(err)
	case info.Mode()&fs.ModeSymlink != 0:
		return false, fmt.Errorf("%s is a symbolic link and is not written through; name the file that it leads to", clip(p.shown))
	}
	return true, nil
}

// current reads the file that is about to be replaced and compares its digest.
func (p place) current(ctx context.Context, want string, required bool) ([]byte, fs.FileInfo, error) {
	if exists, err := p.exists(); err != nil {
		return nil, nil, err
	} else if !exists {
		return nil, nil, p.fault(fs.ErrNotExist)
	}
	if want == "" && required {
		return nil, nil, fmt.Errorf("%s exists; read it and give its digest to replace it", clip(p.shown))
	}
	b, info, err := p.content(ctx)
	if err == nil && want != "" && !strings.EqualFold(want, digest(b)) {
		err = fmt.Errorf("%s has changed since the digest was taken; read it again", clip(p.shown))
	}
	return b, info, err
}

// replace creates or replaces a file in one step.
func (p place) replace(content []byte, perm fs.FileMode) (changed, error) {
	if len(content) > maxFile {
		return changed{}, p.tooLarge(int64(len(content)))
	}
	err := p.create(perm, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
	return changed{Path: p.shown, Digest: digest(content), Size: len(content)}, err
}

// create writes a temporary file in the directory of the place and renames it. The rename replaces
// the current file at the place, and follows no link there.
func (p place) create(perm fs.FileMode, write func(f *os.File) error) error {
	temporary := ".callyard-" + rand.Text() + ".tmp"
	if i := strings.LastIndexByte(p.name, '/'); i >= 0 {
		temporary = p.name[:i+1] + temporary
	}
	f, err := p.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return p.fault(err)
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(perm) // the umask must not change the mode of a replaced file
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = p.Rename(temporary, p.name)
	}
	if err != nil {
		return p.fault(errors.Join(err, ignoreMissing(p.Remove(temporary))))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// copyTo copies a file to a place that does not exist yet.
func (p place) copyTo(ctx context.Context, to place) (int64, error) {
	f, info, err := p.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if info.Size() > maxCopy {
		return 0, fmt.Errorf("%s has %d bytes; files of at most %d bytes are copied", clip(p.shown), info.Size(), maxCopy)
	}
	var n int64
	err = to.create(info.Mode().Perm(), func(out *os.File) error {
		n, err = io.Copy(out, io.LimitReader(&contextReader{ctx, f}, maxCopy))
		return err
	})
	return n, err
}
