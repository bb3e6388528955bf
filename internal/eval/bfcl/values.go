package bfcl

import "strings"

// ignored are the characters that are removed before strings are compared.
var ignored = strings.NewReplacer(" ", "", ",", "", ".", "", "/", "", "-", "", "_", "", "*", "", "^", "", "İ", "i\u0307")

// standard returns a string in the form for comparisons.
func standard(s string) string {
	return strings.ReplaceAll(strings.ToLower(ignored.Replace(s)), "'", `"`)
}

// standardItems returns the items with strings in the form for comparisons.
func standardItems(items []any) []any {
	out := make([]any, len(items))
	for i, item := range items {
		out[i] = standardItem(item)
	}
	return out
}

func standardItem(item any) any {
	if s, ok := item.(string); ok {
		return standard(s)
	}
	return item
}

func checkString(value any, possible []any) Fault {
	s, ok := value.(string)
	if !ok {
		return Undecided
	}
	for _, answer := range possible {
		if text, ok := answer.(string); ok && standard(text) == standard(s) {
			return ""
		}
	}
	return "value_error:string"
}

func checkList(value any, possible []any) Fault {
	items, ok := characters(value)
	if !ok {
		return Undecided
	}
	var answers []any
	for _, answer := range possible {
		list, ok := characters(answer)
		if object, isDict := answer.(*dict); isDict && len(object.keys) == 0 {
			list, ok = nil, true
		}
		if !ok {
			return Undecided
		}
		answers = append(answers, standardItems(list))
	}
	if !in(standardItems(items), answers) {
		return "value_error:list/tuple"
	}
	return ""
}

func checkDict(value any, possible []any) Fault {
	object, ok := value.(*dict)
	if !ok {
		return Undecided
	}
	fault := Fault("dict_checker:unclear")
	for _, answer := range possible {
		if answer == "" {
			continue
		}
		want, ok := answer.(*dict)
		if !ok {
			return Undecided
		}
		if fault = checkMembers(object, want); fault == "" || fault == Undecided {
			return fault
		}
	}
	return fault
}

// checkMembers compares an object with a possible answer, which has a list of possible values for
// each key. It returns the last fault, like the official checker.
func checkMembers(object, want *dict) (fault Fault) {
	for _, key := range object.keys {
		accepted, ok := want.get(key)
		if !ok {
			fault = "value_error:dict_key"
			break
		}
		list, ok := characters(accepted)
		if !ok {
			return Undecided
		}
		if !in(standardItem(object.values[key]), standardItems(list)) {
			fault = "value_error:dict_value"
			break
		}
	}
	for _, key := range want.keys {
		if _, ok := object.get(key); ok {
			continue
		}
		switch accepted := want.values[key].(type) {
		case string: // every string contains the empty string
		case []any:
			if !in("", accepted) {
				return "value_error:dict_key"
			}
		case *dict:
			if _, ok := accepted.get(""); !ok {
				return "value_error:dict_key"
			}
		default:
			return Undecided
		}
	}
	return fault
}

// checkListOfDicts compares objects in order.
func checkListOfDicts(value any, possible []any) Fault {
	items, ok := value.([]any)
	if !ok {
		return Undecided
	}
	fault := Fault("list_dict_checker:unclear")
	for _, answer := range possible {
		list, ok := characters(answer)
		if !ok {
			if object, isDict := answer.(*dict); !isDict || len(object.keys) > 0 {
				return Undecided
			}
		}
		if len(items) != len(list) {
			fault = "value_error:list_dict_count"
			continue
		}
		fault = ""
		for i := range items {
			if fault = checkDict(items[i], list[i:i+1]); fault != "" {
				break
			}
		}
		if fault == "" || fault == Undecided {
			return fault
		}
	}
	return fault
}
