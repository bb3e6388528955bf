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
	var mismatch *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &mismatch):
		return err
	case mismatch.Field != "":
		member := mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:] // without the name of a Go type
		return fmt.Errorf("the member %s has a value of a wrong type: %s", member, mismatch.Value)
	case mismatch.Type.Kind() == reflect.Slice:
		return fmt.Errorf("it must be a JSON list, and is of the type %s", mismatch.Value)
	}
	return fmt.Errorf("it must be a JSON object, and is of the type %s", mismatch.Value)
}
