package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/callyard/callyard/internal/launch/native"
)

// Limits of what read returns.
const (
	maxLines  = 2000
	maxOutput = 256 << 10 // bytes
)

type (
	readArguments struct {
		Path       string `json:"path" jsonschema:"Path of the file."`
		Offset     int    `json:"offset,omitempty" jsonschema:"Number of the first line to return, from 1, which is the default."`
		Limit      int    `json:"limit,omitempty" jsonschema:"Largest number of lines to return; 2000 if left out, and at most."`
		DigestOnly bool   `json:"digest_only,omitempty" jsonschema:"If true, the content is left out. Files that are not text are allowed."`
	}
	readResult struct {
		Path       string `json:"path"`
		Digest     string `json:"digest" jsonschema:"SHA-256 of the whole file in hexadecimal; write and edit take it."`
		Size       int    `json:"size" jsonschema:"Size of the whole file in bytes."`
		FirstLine  int    `json:"first_line,omitempty" jsonschema:"Number of the first line in content, from 1."`
		LineCount  int    `json:"line_count,omitempty" jsonschema:"Number of lines in content."`
		TotalLines int    `json:"total_lines,omitempty" jsonschema:"Number of lines of the whole file."`
		NextOffset int    `json:"next_offset,omitempty" jsonschema:"The offset that reads on; left out at the end of the file."`
		Content    string `json:"content,omitempty" jsonschema:"The lines, as they are in the file."`
	}
	infoArguments struct {
		Path string `json:"path" jsonschema:"Path of a file or directory."`
	}
	infoResult struct {
		Exists      bool   `json:"exists"`
		Path        string `json:"path"`
		Type        string `json:"type,omitempty" jsonschema:"file, directory, symlink, FIFO, socket, device or special file. A symlink is not followed."`
		Size        int64  `json:"size" jsonschema:"Size in bytes."`
		Modified    string `json:"last_modified,omitempty" jsonschema:"Time of the last change, ISO 8601 in UTC."`
		Permissions string `json:"permissions,omitempty" jsonschema:"Such as rwxr-xr-x."`
		Links       uint64 `json:"hard_links,omitempty" jsonschema:"Number of hard links. A file with more than one is not read."`
		Writable    bool   `json:"writable" jsonschema:"Whether the path is in a writable root."`
	}
)

func (s *Server) read(ctx context.Context, _ *native.Call, in readArguments) (readResult, error) {
	p, err := s.find(in.Path)
	if err != nil {
		return readResult{}, err
	}
	switch {
	case in.Offset < 0:
		return readResult{}, errors.New("offset is the number of a line, from 1")
	case in.Limit < 0:
		return readResult{}, errors.New("limit must be above 0")
	case in.DigestOnly:
		b, _, err := p.content(ctx)
		return readResult{Path: p.shown, Digest: digest(b), Size: len(b)}, err
	}
	b, err := p.text(ctx)
	if err != nil {
		return readResult{}, err
	}
	first, limit := max(in.Offset, 1), in.Limit
	if limit == 0 || limit > maxLines {
		limit = maxLines
	}
	r := readResult{Path: p.shown, Digest: digest(b), Size: len(b)}
	var out []byte
	full := false
	for line := range bytes.Lines(b) {
		r.TotalLines++
		switch {
		case r.TotalLines < first || full:
		case r.LineCount == limit || len(out)+len(line) > maxOutput && r.LineCount > 0:
			full, r.NextOffset = true, r.TotalLines
		case len(line) > maxOutput:
			return readResult{}, fmt.Errorf("line %d of %s has %d bytes; lines of at most %d bytes are returned. Use grep for parts of it", r.TotalLines, clip(p.shown), len(line), maxOutput)
		default:
			out = append(out, line...)
			r.LineCount++
		}
	}
	if r.LineCount > 0 {
		r.FirstLine = first
	} else if r.TotalLines > 0 {
		return readResult{}, fmt.Errorf("%s has %d lines, and offset is %d", clip(p.shown), r.TotalLines, first)
	}
	r.Content = string(out)
	return r, nil
}

func (s *Server) info(_ context.Context, _ *native.Call, in infoArguments) (infoResult, error) {
	p, err := s.find(in.Path)
	if err != nil {
		return infoResult{}, err
	}
	r := infoResult{Path: p.shown, Writable: p.writable}
	info, err := p.Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return infoResult{}, p.fault(err)
	}
	r.Exists, r.Type, r.Size = true, typeOf(info.Mode()), info.Size()
	r.Modified, r.Permissions = info.ModTime().UTC().Format(time.RFC3339), info.Mode().Perm().String()[1:]
	if !info.IsDir() {
		r.Links = links(info)
	}
	return r, nil
}
