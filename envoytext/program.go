package envoytext

import (
	"regexp/syntax"
	"slices"
)

// programSize returns the number of instructions of the program that RE2 makes from an expression, which Envoy compares
// with its limit. RE2 compiles an expression as Go does, and then flattens the program: an alternative becomes a list
// of the instructions that it can begin with, and a list that is reached from several places is kept once. The start
// and the end of the text, and a literal right after the start, take no instructions.
//
// The work grows with the square of the size if many consecutive parts are optional, as in (a?b?c?){1000}. steps is the
// number of instructions that programSize visited; beyond maxSteps it gives up, and size is meaningless.
func programSize(parsed *syntax.Regexp) (size, steps int) {
	rest, literal := withoutLiteral(parsed)
	simple, starts := withoutEdge(rest.Simplify(), syntax.OpBeginText)
	simple, _ = withoutEdge(simple, syntax.OpEndText)
	p, err := syntax.Compile(simple)
	if err != nil || len(p.Inst) > maxSteps {
		return 0, maxSteps + 1
	}
	f := &flattening{
		program: p, predecessors: make([][]uint32, len(p.Inst)), isRoot: make([]bool, len(p.Inst)),
		seen:   make([]uint32, len(p.Inst)),
		inside: make([]bool, len(p.Inst)), steps: len(p.Inst),
	}
	f.root(uint32(p.Start))
	for i := 0; i < len(f.roots); i++ { // f.roots grows during the loop
		f.follow(f.roots[i])
	}
	for i := len(f.roots) - 1; i >= 0; i-- {
		f.dominate(f.roots[i])
	}
	n := 1 // the instruction that fails
	if literal || !starts {
		n += 2 // those that skip text before a match
	}
	for _, r := range f.roots {
		n += f.length(r)
	}
	return n, f.steps
}

// withoutLiteral removes the literal at the beginning of an expression, right after the start of the text. found
// reports whether there was one.
func withoutLiteral(re *syntax.Regexp) (rest *syntax.Regexp, found bool) {
	i := 0
	for re.Op == syntax.OpConcat && i < len(re.Sub) && re.Sub[i].Op == syntax.OpBeginText {
		i++
	}
	if i == 0 || i == len(re.Sub) || re.Sub[i].Op != syntax.OpLiteral {
		return re, false
	}
	return &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags, Sub: re.Sub[i+1:]}, true
}

// withoutEdge removes an anchor at the start or the end of the text. found reports whether there was one.
func withoutEdge(re *syntax.Regexp, edge syntax.Op) (rest *syntax.Regexp, found bool) {
	at := 0
	switch re.Op {
	case edge:
		return &syntax.Regexp{Op: syntax.OpEmptyMatch, Flags: re.Flags}, true
	case syntax.OpConcat:
		if len(re.Sub) == 0 {
			return re, false
		}
		if edge == syntax.OpEndText {
			at = len(re.Sub) - 1
		}
	case syntax.OpCapture:
	default:
		return re, false
	}
	inner, found := withoutEdge(re.Sub[at], edge)
	if !found {
		return re, false
	}
	out := *re
	out.Sub = slices.Clone(re.Sub)
	out.Sub[at] = inner
	return &out, true
}

// flattening is the state of programSize. Owned by the caller of programSize.
type flattening struct {
	program      *syntax.Prog
	predecessors [][]uint32 // the instructions that lead to an alternative
	roots        []uint32   // the first instructions of the lists
	isRoot       []bool
	seen         []uint32 // for each instruction, the last walk that visited it
	walks        uint32   // number of walks so far
	inside       []bool   // members of the list that dominate visits; all false between its calls
	steps        int      // number of instructions visited
	stack        []uint32 // the stack of walk, kept to reuse its memory
}

func (f *flattening) root(id uint32) {
	if f.program.Inst[id].Op == syntax.InstFail || f.isRoot[id] {
		return
	}
	f.isRoot[id] = true
	f.roots = append(f.roots, id)
}

// walk visits what can be reached from root without leaving its list. It stops after maxSteps.
func (f *flattening) walk(root uint32, visit func(id uint32) (deeper bool)) {
	f.walks++
	stack := append(f.stack[:0], root)
	for len(stack) > 0 && f.steps <= maxSteps {
		id := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if f.seen[id] == f.walks {
			continue
		}
		f.seen[id] = f.walks
		f.steps++
		if !visit(id) {
			continue
		}
		switch in := &f.program.Inst[id]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			stack = append(stack, in.Arg, in.Out)
		case syntax.InstNop:
			stack = append(stack, in.Out)
		}
	}
	f.stack = stack
}

// follow finds the roots to which the instructions of one list lead.
func (f *flattening) follow(root uint32) {
	f.walk(root, func(id uint32) bool {
		switch in := &f.program.Inst[id]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			for _, out := range []uint32{in.Out, in.Arg} {
				f.precede(id, out)
			}
		case syntax.InstNop:
			f.precede(id, in.Out)
		case syntax.InstMatch, syntax.InstFail:
		default:
			f.root(in.Out)
		}
		return true
	})
}

func (f *flattening) precede(id, out uint32) {
	f.steps += len(f.predecessors[out])
	if !slices.Contains(f.predecessors[out], id) {
		f.predecessors[out] = append(f.predecessors[out], id)
	}
}

// dominate makes those instructions of a list roots that can also be reached from other lists.
func (f *flattening) dominate(root uint32) {
	var list []uint32
	f.walk(root, func(id uint32) bool {
		if id != root && f.isRoot[id] {
			return false
		}
		f.inside[id] = true
		list = append(list, id)
		return true
	})
	slices.Sort(list)
	for _, id := range list {
		f.steps += len(f.predecessors[id])
		if slices.ContainsFunc(f.predecessors[id], func(p uint32) bool { return !f.inside[p] }) {
			f.root(id)
		}
	}
	for _, id := range list {
		f.inside[id] = false
	}
}

// length returns the number of instructions in the list of a root.
func (f *flattening) length(root uint32) int {
	n := 0
	f.walk(root, func(id uint32) bool {
		if id != root && f.isRoot[id] {
			n++ // the jump to the other list
			return false
		}
		switch in := &f.program.Inst[id]; in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			n += ranges(in)
		case syntax.InstCapture, syntax.InstEmptyWidth, syntax.InstMatch:
			n++
		}
		return true
	})
	return n
}

// ranges returns the number of byte ranges that an instruction matches.
func ranges(in *syntax.Inst) int {
	const last = 0xff
	switch {
	case in.Op == syntax.InstRuneAny:
		return 1
	case in.Op == syntax.InstRuneAnyNotNL:
		return 2
	case len(in.Rune) == 1:
		return 1 // the instruction itself ignores case
	}
	folds := foldsASCII(in.Rune)
	n := 0
	for i := 0; i+1 < len(in.Rune); i += 2 {
		low, high := in.Rune[i], in.Rune[i+1]
		if low > last || folds && low >= 'A' && high <= 'Z' {
			continue
		}
		n++
	}
	return max(n, 1)
}

// foldsASCII reports whether a class contains each ASCII letter in both cases or in neither.
func foldsASCII(class []rune) bool {
	has := func(r rune) bool {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= r && r <= class[i+1] {
				return true
			}
		}
		return false
	}
	for r := 'A'; r <= 'Z'; r++ {
		if has(r) != has(r+'a'-'A') {
			return false
		}
	}
	return true
}
