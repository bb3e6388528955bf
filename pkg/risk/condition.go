package risk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"

	"github.com/callyard/callyard/pkg/risk/yamldoc"
)

const (
	// costLimit bounds one run of a condition in CEL's cost units: looking through
	// a text of 1 MiB costs a little over 100,000.
	costLimit = 200_000
	// conditionTimeout bounds what loops over arguments, should a cost be off.
	conditionTimeout = 100 * time.Millisecond
	// maxCondition and maxNodes bound the condition itself.
	maxCondition = 4096
	maxNodes     = 2000
	// maxRegexp bounds a regular expression in instructions, maxSearched the
	// arguments that one looks through: its cost is counted only when it is done.
	maxRegexp   = 500
	maxSearched = 64 << 10
)

// Variables of conditions that may be missing; see [Missing].
const (
	varArguments = "args"
	varGroups    = "principal.groups"
)

// condition is a compiled CEL expression.
type condition struct {
	program cel.Program
	// constant is the value of an expression that is the same for every call.
	constant hint
	// loops says that a macro goes over lists or maps, so that time is watched.
	loops   bool
	timeout time.Duration
	// searches says that it has a regular expression.
	searches bool
	// arguments and groups say that it reads these parts of a call.
	arguments, groups bool
}

// Missing says which parts of a call are not known to whoever asks for its assessment.
type Missing struct{ Arguments, Groups bool }

// lacks says whether the condition reads what is missing. Whether a regular expression may
// run depends on the size of the arguments.
func (c *condition) lacks(m Missing) bool {
	return m.Arguments && (c.arguments || c.searches) || m.Groups && c.groups
}

// facts are the variables of conditions for one call. The arguments are decoded
// when the first condition asks for them, and once.
type facts struct {
	in   *Input
	args any
}

// ResolveName returns a variable by its name.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case varArguments:
		if f.args == nil {
			f.args = argsOf(f.in.Arguments)
		}
		return f.args, true
	case "tool":
		return types.String(f.in.Tool), true
	case "server":
		return types.String(f.in.Server), true
	case "principal.name":
		return types.String(f.in.Principal.Name), true
	case "principal.owner":
		return types.String(cmp.Or(f.in.Principal.Owner, f.in.Principal.Name)), true
	case varGroups:
		return types.NewStringList(types.DefaultTypeAdapter, f.in.Principal.Groups), true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (f *facts) Parent() interpreter.Activation { return nil }

// newEnv is the language of conditions. The parts of the principal are variables
// of their own, with dots in their names, so that a wrong part or type is a fault
// of the policy and not of a call.
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable(varArguments, cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tool", cel.StringType),
		cel.Variable("server", cel.StringType),
		cel.Variable("principal.name", cel.StringType),
		cel.Variable("principal.owner", cel.StringType),
		cel.Variable(varGroups, cel.ListType(cel.StringType)),
		cel.OptionalTypes(),
		ext.Strings(),
		cel.CrossTypeNumericComparisons(true),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateComprehensionNestingLimit(2), cel.ValidateRegexProgramSizeLimit(maxRegexp)),
		cel.ParserExpressionSizeLimit(maxCondition),
		cel.ExpressionNodeLimit(maxNodes),
		cel.RegexProgramSizeLimit(maxRegexp),
	)
}

// issue is a fault of a condition; line and column count from 1 inside it, 0 for
// the whole.
type issue struct {
	line, column int
	message      string
}

// compile turns the source of a condition into one. It does not panic.
func compile(env *cel.Env, source string) (c *condition, issues []issue) {
	defer func() {
		if recover() != nil {
			c, issues = nil, []issue{{message: "the condition cannot be parsed; simplify it."}}
		}
	}()
	tree, found := env.Compile(source)
	if found.Err() != nil {
		for _, e := range found.Errors() {
			issues = append(issues, issue{e.Location.Line(), e.Location.Column() + 1, celSentence(e.Message)})
			if strings.HasPrefix(e.Message, syntaxError) {
				return nil, issues[len(issues)-1:] // what follows is about what it made unreadable
			}
		}
		return nil, issues
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) {
		what := cel.FormatCELType(out)
		if out.IsExactType(cel.DynType) {
			what = "a value of any type"
		}
		return nil, []issue{{message: fmt.Sprintf("the condition returns %s, but must return true or false; add a comparison, such as == true.", what)}}
	}
	program, err := env.Program(tree, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit), cel.InterruptCheckFrequency(32))
	if err != nil {
		return nil, []issue{{message: "the condition cannot be used: " + yamldoc.OneLine(err.Error()) + "."}}
	}
	c = &condition{program: program, timeout: conditionTimeout}
	free := true
	ast.PostOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			c.loops = true
		case ast.IdentKind:
			free = false
			c.arguments = c.arguments || e.AsIdent() == varArguments
			c.groups = c.groups || e.AsIdent() == varGroups
		case ast.SelectKind:
			free = false
		case ast.CallKind:
			c.searches = c.searches || e.AsCall().FunctionName() == "matches"
			if message := refused(e.AsCall()); message != "" {
				where := tree.NativeRep().SourceInfo().GetStartLocation(e.ID())
				issues = append(issues, issue{where.Line(), where.Column() + 1, message})
			}
		}
	}))
	if issues != nil {
		return nil, issues
	}
	if free && !c.loops {
		if value, _, err := program.Eval(cel.NoVars()); err == nil {
			if c.constant = no; value == types.True {
				c.constant = ok
			}
		}
	}
	return c, nil
}

// refused says why a call of a function has no place in a condition, or "": who
// calls a tool must not choose how much work and memory its judgement takes.
func refused(call ast.CallExpr) string {
	switch name := call.FunctionName(); name {
	case "matches":
		if pattern := call.Args()[len(call.Args())-1]; pattern.Kind() != ast.LiteralKind {
			return "a regular expression must be a literal, not a value of the call."
		}
	case "replace", "join", "format":
		return name + "() is not supported in conditions; compare the parts."
	}
	return ""
}

// eval decides the condition. why is not empty where that cannot be done; it is
// a sentence that repeats no value.
func (c *condition) eval(known *facts) (holds bool, why string) {
	defer func() {
		if recover() != nil {
			holds, why = false, "it failed."
		}
	}()
	if c.searches && len(known.in.Arguments) > maxSearched {
		return false, "the arguments are too large for a regular expression."
	}
	var value any
	var err error
	if c.loops {
		ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
		defer cancel()
		value, _, err = c.program.ContextEval(ctx, known)
	} else {
		value, _, err = c.program.Eval(known)
	}
	if err != nil {
		return false, whyFailed(err)
	}
	b, ok := value.(types.Bool)
	if !ok {
		return false, "it did not return true or false."
	}
	return bool(b), ""
}

// whyFailed sorts errors of CEL. Their texts may hold values and are not passed on.
func whyFailed(err error) string {
	var canceled interpreter.EvalCancelledError
	text := err.Error()
	switch {
	case errors.Is(err, errUnreadable):
		return errUnreadable.Error()
	case errors.Is(err, errTooBig):
		return errTooBig.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it took too long."
	case errors.As(err, &canceled) || strings.Contains(text, "cost limit"):
		return "it exceeded the cost limit of conditions."
	case strings.HasPrefix(text, "no such key"), strings.HasPrefix(text, "index out of bounds"):
		return "a value that it reads does not exist. If a value can be absent, check it with has() first."
	case strings.HasPrefix(text, "no such overload"):
		return "a value does not have the expected type."
	}
	return "it cannot use a value."
}
