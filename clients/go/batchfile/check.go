package batchfile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// serversMost limits the number of servers that are recorded.
const serversMost = 1000

// faultsMost limits the number of faulty lines that are reported; the others are counted.
const faultsMost = 5

// check validates every line of a file, or the first line of a pipe, before the batch is
// created. The error lists the lines that are not calls. The front door finds all other
// faults of a call, and refuses only that line.
func (in *input) check(ctx context.Context) error {
	var from io.Reader
	if in.file != nil {
		from = io.NewSectionReader(in.file, in.start, in.mark.Size-in.start)
	} else {
		p, err := in.pieceOfPipe(ctx, 1, 1)
		if errors.Is(err, io.EOF) {
			return nil // settle reports an empty input
		} else if err != nil {
			return err
		}
		from = p.body
		defer func() { in.rest, in.line = in.kept, in.keptFrom }()
	}
	lines := bufio.NewReaderSize(from, 1<<18)
	var faults []string
	count := 0
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fault(BadCalls, in.name, "%s cannot be read at line %d: %w", in.name, number, err)
		}
		server, fault := lineFault(line)
		if _, known := in.servers[server]; server != "" && !known && len(in.servers) < serversMost {
			if in.servers == nil {
				in.servers = make(map[string]int)
			}
			in.servers[server] = number
		}
		if number == 1 && (bytes.HasPrefix(line, []byte("\xff\xfe")) || bytes.HasPrefix(line, []byte("\xfe\xff"))) {
			return fault16(in.name)
		}
		if fault != "" {
			if count++; count <= faultsMost {
				faults = append(faults, fmt.Sprintf("\n  %s:%d: %s", in.name, number, fault))
			}
		}
		if err != nil {
			break
		}
	}
	if count == 0 {
		return nil
	}
	if count > faultsMost {
		more := fmt.Sprintf("%d lines", count-faultsMost)
		if count == faultsMost+1 {
			more = "1 line"
		}
		faults = append(faults, "\n  and "+more+" more")
	}
	return fault(BadCalls, in.name, "%s is not a file of calls; nothing was sent.%s\nEach line is a call: {\"server\":\"…\",\"tool\":\"…\",\"arguments\":{…}}", in.name, strings.Join(faults, ""))
}

// fault16 is the error for a UTF-16 file, which some Windows shells and editors write.
func fault16(name string) error {
	return fault(BadCalls, name, "%s is encoded in UTF-16; save it as UTF-8. Nothing was sent.", name)
}

// readLine reads one line of at most lineMost bytes. It returns the last line with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for whole := bytes.Clone(line); ; {
		if len(whole) > lineMost {
			return nil, errors.New(longLine)
		}
		line, err = r.ReadSlice('\n')
		if whole = append(whole, line...); !errors.Is(err, bufio.ErrBufferFull) {
			return whole, err
		}
	}
}

// lineFault returns the server of a call, or the reason why a line is not a call. It returns
// "" and "" for a blank line. It quotes no other part of the line.
func lineFault(line []byte) (server, why string) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return "", ""
	}
	var call struct {
		Server, Tool json.RawMessage
	}
	if err := json.Unmarshal(line, &call); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return "", "it is not a JSON object"
		}
		return "", fmt.Sprintf("it is not valid JSON at byte %d", max(syntax.Offset, 1))
	}
	for _, m := range []struct {
		name string
		raw  json.RawMessage
	}{{"server", call.Server}, {"tool", call.Tool}} {
		if len(m.raw) == 0 || m.raw[0] != '"' {
			return "", "the member " + m.name + " is missing, or not a string"
		}
	}
	if err := json.Unmarshal(call.Server, &server); err != nil { // validated above
		return "", "the member server is not a string"
	}
	return server, ""
}
