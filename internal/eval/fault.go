package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// PlainFault returns an error of encoding/json in the words of a file, without types of Go. It returns
// other errors unchanged.
func PlainFault(err error) error {
	mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case !ok:
		return err
	case mismatch.Field != "":
		member := mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:] // without the name of a Go type
		return fmt.Errorf("the member %s has a value of a wrong type: %s", member, mismatch.Value)
	case mismatch.Type.Kind() == reflect.Slice:
		return fmt.Errorf("it must be a JSON list, and is of the type %s", mismatch.Value)
	}
	return fmt.Errorf("it must be a JSON object, and is of the type %s", mismatch.Value)
}

// FaultAt returns the offset in the text at which an error of encoding/json occurred, from 0. It
// returns 0 for other errors.
func FaultAt(err error) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(max(0, syntax.Offset-1))
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return int(max(0, mismatch.Offset-1))
	}
	return 0
}
