package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/callyard/callyard/internal/kit/truncate"
	"github.com/callyard/callyard/internal/launch/native"
)

// Limits of glob and grep.
const (
	maxPattern  = 1000 // bytes
	maxSegments = 64   // of a glob pattern
	maxGlob     = 1000
	maxMatches  = 200
	maxLine     = 500      // bytes shown of a line
	maxScan     = 64 << 20 // bytes that one grep reads
)

var errPattern = errors.New(`the pattern is not valid: * stands for any text in a name, ? for a character, [a-z] for one of several, and ** for any directories`)

type (
	globArguments struct {
		Pattern string `json:"pattern" jsonschema:"Pattern of paths relative to root, such as **/*.go or docs/*.md. ** stands for any number of directories."`
		Root    string `json:"root,omitempty" jsonschema:"Directory to search. It may be left out where there is one root."`
	}
	globResult struct {
		Files     []string `json:"files" jsonschema:"Paths of files relative to root, the most recently changed first."`
		Truncated bool     `json:"truncated,omitempty" jsonschema:"Whether results are left out, because there are too many."`
	}
	grepArguments struct {
		Pattern     string `json:"pattern" jsonschema:"Regular expression in RE2 syntax, such as func \\w+Name or (?i)todo. It is matched line by line."`
		Path        string `json:"path,omitempty" jsonschema:"File or directory to search. It may be left out where there is one root."`
		FilePattern string `json:"file_pattern,omitempty" jsonschema:"Pattern of the names of files to search, such as *.go."`
		Max         int    `json:"max_results,omitempty" jsonschema:"Largest number of lines to return, 50 if left out, at most 200."`
	}
	grepMatch struct {
		File    string `json:"file" jsonschema:"Path relative to the directory that is searched."`
		Line    int    `json:"line_number" jsonschema:"Number of the line, from 1."`
		Content string `json:"content" jsonschema:"The line without space around it, of at most 500 bytes."`
	}
	grepResult struct {
		Matches   []grepMatch `json:"matches"`
		Skipped   int         `json:"skipped,omitempty" jsonschema:"Number of files that are not text, too large, hard-linked or not readable."`
		Truncated bool        `json:"truncated,omitempty" jsonschema:"Whether files or results are left out, because there are too many."`
	}
)

func (s *Server) glob(ctx context.Context, _ *native.Call, in globArguments) (globResult, error) {
	segments := strings.Split(path.Clean(in.Pattern), "/")
	if in.Pattern == "" || len(in.Pattern) > maxPattern || len(segments) > maxSegments || segments[0] == "" || segments[0] == ".." {
		return globResult{}, fmt.Errorf("%w. It is relative to root and has at most %d bytes", errPattern, maxPattern)
	}
	for _, one := range segments {
		if _, err := path.Match(one, ""); err != nil {
			return globResult{}, errPattern
		}
	}
	dir, err := s.findDirectory(in.Root)
	if err != nil {
		return globResult{}, err
	}
	var all []found
	w := walker{ctx: ctx, max: maxEntries, hidden: true}
	err = w.walk(dir, maxDepth, func(p place, info fs.FileInfo) error {
		if !info.IsDir() && matches(segments, strings.Split(p.below(dir), "/")) {
			all = append(all, found{p, info})
		}
		return nil
	})
	if err != nil {
		return globResult{}, err
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	r := globResult{Files: []string{}, Truncated: w.truncated || len(all) > maxGlob}
	for _, one := range all[:min(len(all), maxGlob)] {
		r.Files = append(r.Files, one.place.below(dir))
	}
	return r, nil
}

// below returns the path relative to a directory around the place.
func (p place) below(dir place) string {
	if dir.name == "." {
		return p.name
	}
	return strings.TrimPrefix(p.name, dir.name+"/")
}

// matches reports whether the names of a path match the segments of a pattern. Its running time
// is the product of both numbers, regardless of the number of **.
func matches(segments, names []string) bool {
	fits := make([]bool, len(names)+1) // fits[i]: the segments so far fit names[:i]
	fits[0] = true
	for _, segment := range segments {
		next := make([]bool, len(names)+1)
		for i := range fits {
			switch {
			case segment == "**":
				next[i] = fits[i] || i > 0 && next[i-1]
			case i > 0 && fits[i-1]:
				next[i], _ = path.Match(segment, names[i-1])
			}
		}
		fits = next
	}
	return fits[len(names)]
}

func (s *Server) grep(ctx context.Context, _ *native.Call, in grepArguments) (grepResult, error) {
	if len(in.Pattern) > maxPattern {
		return grepResult{}, fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(in.Pattern), maxPattern)
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return grepResult{}, fmt.Errorf("the pattern is not a regular expression in RE2 syntax: %w", err)
	}
	if _, err := path.Match(in.FilePattern, ""); err != nil || len(in.FilePattern) > maxPattern {
		return grepResult{}, errPattern
	}
	g := matchCollector{ctx: ctx, re: re, left: maxScan, max: in.Max, result: grepResult{Matches: []grepMatch{}}}
	if g.max <= 0 {
		g.max = 50
	}
	g.max = min(g.max, maxMatches)
	p, err := s.find(in.Path)
	if err != nil {
		return grepResult{}, err
	}
	info, err := p.Stat(p.name)
	if err != nil {
		return grepResult{}, p.fault(err)
	}
	if !info.IsDir() {
		b, err := p.text(ctx)
		if err == nil {
			err = g.scan(path.Base(p.name), b)
		}
		return g.done(err)
	}
	w := walker{ctx: ctx, max: maxEntries, hidden: true}
	err = w.walk(p, maxDepth, func(file place, info fs.FileInfo) error {
		if matched, _ := path.Match(in.FilePattern, path.Base(file.name)); info.Mode().IsRegular() && (matched || in.FilePattern == "") {
			return g.file(file, info, file.below(p))
		}
		return nil
	})
	g.result.Truncated = g.result.Truncated || w.truncated
	g.result.Skipped += w.skipped
	return g.done(err)
}

// matchCollector collects the matches of one call.
type matchCollector struct {
	ctx    context.Context
	re     *regexp.Regexp
	left   int64 // bytes that may still be read
	max    int
	result grepResult
}

// done returns the result unless the call failed.
func (g *matchCollector) done(err error) (grepResult, error) {
	if err != nil && !errors.Is(err, errStop) {
		return grepResult{}, err
	}
	return g.result, nil
}

func (g *matchCollector) file(p place, info fs.FileInfo, name string) error {
	if info.Size() > maxFile {
		g.result.Skipped++
		return nil
	}
	if g.left -= info.Size(); g.left < 0 {
		g.result.Truncated = true
		return errStop
	}
	b, err := p.text(g.ctx)
	if err != nil {
		if g.ctx.Err() != nil {
			return g.ctx.Err()
		}
		g.result.Skipped++
		return nil
	}
	return g.scan(name, b)
}

func (g *matchCollector) scan(name string, b []byte) error {
	number := 0
	for line := range bytes.Lines(b) {
		if number++; number%1000 == 0 && g.ctx.Err() != nil {
			return g.ctx.Err()
		}
		line = bytes.TrimRight(line, "\r\n")
		if !g.re.Match(line) {
			continue
		}
		if len(g.result.Matches) == g.max {
			g.result.Truncated = true
			return errStop
		}
		line = truncate.Head(bytes.TrimSpace(line), maxLine)
		g.result.Matches = append(g.result.Matches, grepMatch{name, number, string(line)})
	}
	return nil
}
