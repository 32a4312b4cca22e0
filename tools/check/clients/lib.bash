# What the scripts that run clients share. They set scratch, a temporary folder, and end pid.

# serve BIN FLAGS… starts a service on a free port of loopback with the API key "secret", and waits until it listens. It
# sets url, and pid, which the caller ends. The log goes to $scratch/log.
serve() {
  "$1" serve --port 0 --api-key secret "${@:2}" 2>"$scratch/log" &
  pid=$!
  for _ in $(seq 600); do
    url=$(sed -n 's/^listening at \([^ ]*\).*/\1/p' "$scratch/log")
    [ -z "$url" ] || return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  cat "$scratch/log"
  echo "the service did not start"
  return 1
}

# busy keeps the queue of the service at url full of long prompts (busy.py) until idle, which fails if one was lost.
busy() {
  python3 "${BASH_SOURCE%/*}/busy.py" "$url" secret >"$scratch/busy" 2>&1 &
  busy=$!
  sleep 2
}
idle() {
  kill "$busy"
  local rc=0
  wait "$busy" || rc=$?
  cat "$scratch/busy"
  return "$rc"
}

# python_env DIR PACKAGE… installs packages into a virtual environment; npm_env DIR installs those of DIR/package.json. Both
# fail with a reason in $reason.
python_env() {
  python3 -m venv "$1" >"$scratch/pip" 2>&1 && "$1/bin/pip" install -q "${@:2}" >"$scratch/pip" 2>&1 && return
  reason="python3 -m venv or pip install failed: $(tail -n1 "$scratch/pip")"
  return 1
}
npm_env() {
  reason="no npm"
  command -v npm >/dev/null || return 1
  (cd "$1" && npm install --silent --no-audit --no-fund >"$scratch/npm" 2>&1) && return
  reason="npm install failed: $(tail -n1 "$scratch/npm")"
  return 1
}

# random_model OUT DIR compiles a tiny model with random weights and a context of 32,768 tokens (model.py). DIR is for
# packages.
random_model() {
  python_env "$2" -r "${BASH_SOURCE%/*}/requirements-model.txt" || return 1
  "$2/bin/python" "${BASH_SOURCE%/*}/model.py" "$scratch/random-32k"
  (cd "${BASH_SOURCE%/*}/../../.." && go run ./cmd/iflowc compile "$scratch/random-32k" --no-weights --calibrate none --context 32768 -o "$1") >"$scratch/compile" 2>&1 ||
    { cat "$scratch/compile"; exit 1; }
  "$1" weights --random 1
}

# suite COMMAND… runs a suite, which fails by its last line. Its output goes to $scratch/results too.
suite() {
  timeout 300 "$@" >"$scratch/suite" 2>&1 || true
  grep -q '^=== ' "$scratch/suite" || { tail -n5 "$scratch/suite"; echo "=== $2: did not end"; } >>"$scratch/suite"
  grep -v '^=== ' "$scratch/suite" || true
  grep -e '^=== ' -e '^FAIL ' "$scratch/suite" >>"$scratch/results"
}

# report prints the counts of all suites and each failed check, and fails if there is one.
report() {
  echo
  sed 's/^=== //; s/^FAIL /  FAIL/' "$scratch/results"
  ! grep -q -e '^FAIL ' -e 'did not end$' "$scratch/results"
}
