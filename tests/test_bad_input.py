"""Wrong inputs, and the message that each gets.

Files and arguments, on the command line and in Python. On the command line every problem is one
line that begins with Error and ends with code 1; a wrong use of the command line has code 2.
"""

import io
import os
import re
import shlex
import struct
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import auxhash
from auxhash import HammingIndex, MACHash
from auxhash.cli import main
from auxhash.experiments import datasets
from auxhash.experiments.datasets import write_vectors
from auxhash.files import tables
from auxhash.files.gist import gist
from auxhash.files.images import image_folder, read_image
from auxhash.learn import baselines
from auxhash.learn.choose import choose
from auxhash.mac import affinity, losses
from auxhash.search import metrics
from auxhash.search.index import ApproximateIndex, NamedIndex

X = np.random.default_rng(0).normal(size=(40, 6))
Y = np.arange(40) % 4


def npy_header(text):
    """A .npy file that states whatever is given, and holds next to nothing."""
    header = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8)


def npz_of(members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


def npy_of(array):
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)
    return content.getvalue()


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 6), }"
LYING = "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, 6), }"
NO_DICT = "__import__('os').system('true')"


ALONE = ("alone/cats/a.png", "alone/cats/b.png", "alone/cats/more/c.png")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of good files, and of bad ones named after their fault."""
    folder = tmp_path_factory.mktemp("bad")
    hole = X.copy()
    hole[17, 2] = np.nan
    infinite = X.copy()
    infinite[3, 0] = np.inf
    arrays = {
        "X.npy": X,
        "y.npy": Y,
        "few-labels.npy": Y[:7],
        "few-X.npy": X[:7],
        "counted.npy": np.column_stack([np.arange(40), X]),
        "keyed.npy": np.column_stack([X, np.arange(40)[::-1] * 37 + 1000]),
        "wide-X.npy": np.zeros((40, 9)),
        "half-ids.npy": np.arange(40) + 0.5,
        "one-class.npy": np.zeros(40, int),
        "real-labels.npy": X[:, 0],
        "nan.npy": hole,
        "inf.npy": infinite,
        "text.npy": np.array([["a", "b"]]),
        "complex.npy": X * 1j,
        "flat.npy": X[0],
        "deep.npy": X[None],
        "no-rows.npy": X[:0],
        "no-columns.npy": X[:, :0],
        "one-row.npy": X[:1],
        "narrow.npy": X[:, :2],
        "objects.npy": np.array([{}, {}]),
        "text-objects.npy": np.array(["a", "b"] * 20, object),
        "records.npy": np.zeros(40, [("a", "f4"), ("b", "f4")]),
        "codes.npy": np.arange(40, dtype=np.uint8)[:, None],
        "wide-codes.npy": np.zeros((40, 3), np.uint8),
        "negative-ids.npy": -np.arange(40),
        "twin-ids.npy": np.zeros(40, int),
    }
    for name, array in arrays.items():
        np.save(folder / name, array, allow_pickle=True)
    full = npy_of(X)
    contents = {
        "asked-words.csv": b"query,id\n0,n1\n1,0\n",
        "asked-far.csv": b"query,id\n0,40\n1,41\n",
        "asked-nobody.csv": b"query,id\n99,0\n1,1\n",
        "asked-few.csv": b"query,id\n0,0\n1,1\n",
        "asked-light.csv": b"query,id,weight\n"
        + b"".join(b"%d,0,%d\n" % (i, 1 - 3 * (i == 1)) for i in range(40)),
        "asked-gap.csv": b"query,id\n0,\n1,1\n",
        "asked-wide.csv": b"a,b,c,d\n0,1,2,3\n",
        "empty.npy": b"",
        "truncated.npy": full[:500],
        "header-only.npy": full[:20],
        "huge.npy": npy_header(HUGE),
        "negative.npy": npy_header(LYING),
        "code.npy": npy_header(NO_DICT),
        "foreign.npy": b"GIF89a" + bytes(50),
        "archive.npy": npz_of({"X.npy": full}),
        "empty.npz": b"",
        "not-zip.npz": full,
        "truncated.npz": npz_of({"X.npy": full})[:-40],
        "two.npz": npz_of({"a.npy": full, "b.npy": full}),
        "none.npz": npz_of({}),
        "huge.npz": npz_of({"X.npy": npy_header(HUGE)}),
        "pickle.npz": npz_of({"X.npy": npy_of(np.array([{}]))}),
        "traversal.npz": npz_of({"../../escaped.npy": full, "../y.npy": full}),
        "empty.csv": b"",
        "words.csv": b"a,b,y\n1,2,0\n3,many,1\n",
        "ragged.csv": b"1,2,3\n4,5\n",
        "names-only.csv": b"a,b,y\n",
        "twice.csv": b"a,a\n1,2\n",
        "binary.csv": bytes(range(128, 256)),
        "gap.csv": b"a,b\n1,\n",
        "pairs-far.csv": b"i,j,y\n0,99,1\n",
        "pairs-self.csv": b"i,j,y\n0,0,1\n",
        "pairs-half.csv": b"i,j,y\n0.5,1,1\n",
        "pairs-two.csv": b"i,j\n0,1\n",
        "pairs-nan.csv": b"i,j,y\n0,1,nan\n",
        "pairs-underscore.csv": b"i,j,y\n1_1,1,1\n",
        "shifted.csv": b"kind\n" + b"1\n2\n" * 20,
        "gap-labels.csv": b"1\n\n" + b"2\n" * 39,
        "NA-labels.csv": b"NA\n" + b"2\n" * 39,
        "words.txt": b"a\nb\n" * 20,
        "few-words.txt": b"a\nb\nc\n",
        "long-ids.csv": b"id\n" + b"\n".join(b"x" * (2000 if i == 7 else i + 1) for i in range(40)),
        "years.csv": b"id,year\n" + b"".join(b"%d,1\n" % i for i in range(40)),
        "underscore.csv": b"a,b,y\n1_1,2,0\n",
        "hole.csv": b"NA,2\n3,4\n",
        "counted.csv": b"0,1,2\n3,4,5\n",
        "nul.csv": b"1,2\n3,\0\n",
        "long.csv": b"9" * 200_000,
        "unclosed.npy": npy_header("{'descr': '<f8', 'shape': (1,"),
        "empty.fvecs": b"",
        "truncated.fvecs": b"",  # below
        "mixed.fvecs": struct.pack("<ifff", 3, 1, 2, 3) + struct.pack("<iffff", 4, 1, 2, 3, 4),
        "huge.fvecs": struct.pack("<if", 2**31 - 1, 1.0),
        "negative.fvecs": struct.pack("<if", -1, 1.0),
        "empty.parquet": b"",
        "foreign.parquet": b"PAR1" + bytes(100),
        "features.xls": b"",
        "empty.safetensors": b"",
        "foreign.safetensors": struct.pack("<Q", 2) + b"{}",
        "huge.safetensors": struct.pack("<Q", 2**60) + b"{",
        "empty.index": b"",
        "foreign.index": b"AUXHIDX2" + bytes(100),
        "empty.png": b"",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    write_vectors(folder / "truncated.fvecs", X)
    (folder / "truncated.fvecs").write_bytes((folder / "truncated.fvecs").read_bytes()[:-5])
    hasher = MACHash(n_bits=5, n_similar=5, n_dissimilar=10, max_iter=1, random_state=0, n_jobs=1)
    hasher.fit(X, Y).save(folder / "model.safetensors")
    good = (folder / "model.safetensors").read_bytes()
    (folder / "truncated.safetensors").write_bytes(good[:-9])
    at = good.index(hasher.hash_function_.W.tobytes())
    (folder / "flipped.safetensors").write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    baselines.LSH(n_bits=8, random_state=0).fit(X).save(folder / "unlabelled.safetensors")
    HammingIndex(8).add(np.arange(40, dtype=np.uint8)[:, None]).save(folder / "good.index")
    (folder / "truncated.index").write_bytes((folder / "good.index").read_bytes()[:-1])
    named = NamedIndex(HammingIndex(8)).add(CODES, [f"n{i}" for i in range(40)])
    named.save(folder / "named.index")
    full = (folder / "named.index").read_bytes()
    (folder / "damaged-names.index").write_bytes(full[:-70] + b"x" + full[-69:])
    ApproximateIndex(8).add(CODES).save(folder / "rough.index")
    (folder / "folder").mkdir()
    pictures = {"mixed": ("a.png", "class/b.png"), "broken": ("class/b.png", "other/c.png")}
    for name, inside in pictures.items():
        for path in inside:
            (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / name / path).write_bytes(b"no picture")
    for path in (
        "stray/a.png",
        "stray/b.png",
        "sets/train/class/b.png",
        "bomb/other/a.png",
        *ALONE,
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (20, 20)).save(folder / path)
    (folder / "bomb" / "class").mkdir(parents=True)
    Image.new("1", (13_000, 13_000)).save(folder / "bomb" / "class" / "b.png")
    (folder / "taken").write_text("a file")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    # Of all devices, one beside which no file can be made, whatever the code under test does.
    (folder / "device").symlink_to(os.ttyname(os.openpty()[1]))
    os.mkfifo(folder / "pipe")
    return folder


COMMANDS = [
    # Queries of their own.
    (
        "fit-queries few-X.npy --index good.index -o m",
        r"7 queries without ids, and good.* 40 codes",
    ),
    ("fit-queries X.npy missing.csv --index good.index -o m", r"there is no file missing\.csv"),
    (
        "fit-queries X.npy asked-words.csv --index good.index -o m",
        r"asked-words\.csv: 1 id not in good\.index, such as n1; it has 0 to 39",
    ),
    (
        "fit-queries X.npy asked-far.csv --index good.index -o m",
        r"asked-far\.csv: 2 ids not in good\.index, such as 40",
    ),
    (
        "fit-queries X.npy asked-nobody.csv --index good.index -o m",
        r"asked-nobody\.csv: 1 id not in X\.npy, such as 99; it has 0 to 39",
    ),
    (
        "fit-queries X.npy asked-few.csv --index good.index -o m",
        r"nothing is relevant to 38 queries of X\.npy, such as 2: leave them out",
    ),
    (
        "fit-queries X.npy asked-light.csv --index good.index -o m",
        r"weight must be positive, pair 1 has -2",
    ),
    ("fit-queries X.npy asked-gap.csv --index good.index -o m", r"id of pair 0 is missing"),
    ("fit-queries X.npy asked-wide.csv --index good.index -o m", r"must hold columns query and id"),
    ("fit-queries X.npy X.npy --index good.index -o m", r"must be of shape \(n, 2\) or \(n, 3\)"),
    ("fit-queries nan.npy --index good.index -o m", r"must not hold NaN or infinity; row 17 does"),
    ("fit-queries X.npy --index good.index -o X.npy", r"X\.npy is what the file is made from"),
    ("fit-queries X.npy --index X.npy -o m", r"X\.npy is not an index"),
    ("fit-queries X.npy --codes X.npy -o m", r"X\.npy holds no codes"),
    ("fit-queries X.npy --store sqlite:///missing.db -o m", r"missing\.db"),
    ("fit-queries X.npy --index good.index -o m --hash-function rbf", r"one of network, linear"),
    ("fit-queries X.npy --index good.index -o m --validation 2", r"validation must be from 0 to"),
    ("fit-queries X.npy --index good.index -o m --init y.npy", r"y\.npy"),
    (
        "fit-queries X.npy --index good.index -o m --init model.safetensors",
        r"start must be the model of the codes",
    ),
    ("search good.index X.npy", r"X\.npy holds no codes .*, or --model MODEL here"),
    # Files of features.
    ("fit X.npy y.npy -o m --checkpoint ''", r'checkpoint must name a folder, got ""; "\." is the'),
    ("fit X.npy y.npy -o m --checkpoint y.npy", r"checkpoint must be a folder, and y\.npy is a"),
    ("fit missing.npy y.npy -o m", r"features: there is no file missing\.npy"),
    ("fit features.xls y.npy -o m", r"features\.xls must end in \.npy, \.npz, \.csv, \.parquet"),
    ("fit empty.npy y.npy -o m", r"empty\.npy is not a whole \.npy file: it is empty"),
    ("fit truncated.npy y.npy -o m", r"truncated\.npy is not a whole \.npy file"),
    ("fit header-only.npy y.npy -o m", r"header-only\.npy is not a whole \.npy file"),
    ("fit huge.npy y.npy -o m", r"huge\.npy is not a whole \.npy file"),
    ("fit negative.npy y.npy -o m", r"negative\.npy is not a whole \.npy file"),
    ("fit code.npy y.npy -o m", r"code\.npy is not a whole \.npy file"),
    (
        "fit foreign.npy y.npy -o m",
        r"foreign\.npy is not a whole .*: it begins otherwise",
    ),
    ("fit archive.npy y.npy -o m", r"archive\.npy is not a whole .*: it begins otherwise"),
    ("fit objects.npy y.npy -o m", r"objects\.npy holds Python objects"),
    ("fit text.npy y.npy -o m", r"text\.npy must hold real numbers, got <U1"),
    ("fit complex.npy y.npy -o m", r"complex\.npy must hold real numbers, got complex128"),
    ("fit flat.npy y.npy -o m", r"flat\.npy must be of shape \(n, D\).*got shape \(6,\)"),
    ("fit deep.npy y.npy -o m", r"deep\.npy must be of shape \(n, D\)"),
    ("fit no-rows.npy y.npy -o m", r"no-rows\.npy must be .* not empty, got shape \(0, 6\)"),
    ("fit no-columns.npy y.npy -o m", r"no-columns\.npy must be .* not empty"),
    ("fit nan.npy y.npy -o m", r"nan\.npy must not hold NaN or infinity; row 17 does"),
    ("fit inf.npy y.npy -o m", r"inf\.npy must not hold NaN or infinity; row 3 does"),
    ("fit empty.npz y.npy -o m", r"empty\.npz is not a whole \.npz file"),
    ("fit not-zip.npz y.npy -o m", r"not-zip\.npz is not a whole \.npz file"),
    ("fit truncated.npz y.npy -o m", r"truncated\.npz is not a whole \.npz file"),
    ("fit two.npz y.npy -o m", r"two\.npz must hold an array X; it holds a, b"),
    ("fit none.npz y.npy -o m", r"none\.npz must hold an array X; it holds nothing"),
    ("fit huge.npz y.npy -o m", r"huge\.npz (is not a whole|states arrays that are larger)"),
    ("fit pickle.npz y.npy -o m", r"pickle\.npz: array X holds Python objects"),
    ("fit X.npy text-objects.npy -o m", r"text-objects\.npy holds Python objects.*astype\(str\)"),
    ("fit unclosed.npy y.npy -o m", r"unclosed\.npy is not a whole \.npy file: its header is"),
    ("fit records.npy y.npy -o m", r"records\.npy holds records of"),
    ("fit traversal.npz y.npy -o m", r"must hold an array X; it holds \.\./\.\./escaped, \.\./y"),
    ("fit empty.csv -o m", r"empty\.csv is empty"),
    ("fit words.csv -o m", r"words\.csv: line 3, column 'b': 'many' is no number"),
    ("fit ragged.csv -o m", r"ragged\.csv must have as many columns .* line 2 has 2"),
    ("fit names-only.csv -o m", r"names-only\.csv has a line of names and nothing below"),
    ("fit twice.csv -o m", r"twice\.csv has two columns called 'a'"),
    ("fit binary.csv -o m", r"binary\.csv is not a \.csv file"),
    ("fit gap.csv -o m", r"gap\.csv: line 2, column 'b': '' is no number"),
    ("fit underscore.csv -o m", r"underscore\.csv: line 2, column 'a': '1_1' is no number"),
    ("fit hole.csv y.npy -o m", r"hole\.csv: line 1, column '0': 'NA' is no number \(if line 1"),
    ("fit counted.csv y.npy -o m", r"counted\.csv: line 1 counts 0, 1, 2, .*--no-header"),
    ("fit nul.csv y.npy -o m", r"nul\.csv is not a \.csv file: it holds a NUL byte"),
    ("fit long.csv y.npy -o m", r"long\.csv is not a \.csv file: field larger than"),
    ("fit empty.fvecs y.npy -o m", r"empty\.fvecs is empty"),
    ("fit truncated.fvecs y.npy -o m", r"truncated\.fvecs is truncated"),
    ("fit mixed.fvecs y.npy -o m", r"mixed\.fvecs mixes dimensions: vector 0 has 3, but 4"),
    ("fit huge.fvecs y.npy -o m", r"huge\.fvecs is truncated: 8 bytes cannot hold a vector"),
    ("fit negative.fvecs y.npy -o m", r"negative\.fvecs begins with dimension -1"),
    ("fit empty.parquet y.npy -o m", r"empty\.parquet is not a whole \.parquet file"),
    ("fit foreign.parquet y.npy -o m", r"foreign\.parquet is not a whole \.parquet file"),
    # Folders of pictures.
    ("fit folder -o m", r"folder holds no pictures \(\.png"),
    ("fit mixed -o m", r"mixed holds both pictures, such as a\.png, and folders"),
    ("fit broken -o m", r"b\.png is no picture that can be read"),
    (
        "fit stray -o m",
        r"stray holds 2 pictures, such as a\.png, and no classes: put them into one",
    ),
    (
        "fit alone -o m",
        r"alone holds 3 pictures, all in the folder cats, and two classes .* one folder per class,",
    ),
    ("compare alone", r"alone holds 3 pictures, all in the folder cats, .* or LABELS"),
    ("fit alone/cats -o m", r"alone/cats holds both pictures, such as a\.png, and folders"),
    ("fit alone/cats/more -o m", r"more holds 1 picture, such as c\.png, and no classes: put"),
    ("fit folder -o m", r"folder holds no pictures \(\.png"),
    ("fit sets -o m", r"sets holds 1 pictures?, all in folders of folders, such as train/class/b"),
    (
        "compare stray",
        r"stray holds 2 pictures, .*: put them into one folder per class, or give LAB",
    ),
    ("fit bomb -o m", r"b\.png is too large a picture, at most 100,000,000 pixels.*13,000 x 13,0"),
    ("fit bomb --features json:dumps -o m", r"b\.png is too large a picture"),
    ("fit broken --features nocolon -o m", r"named module:function, got 'nocolon'"),
    ("fit broken --features no_such_module:f -o m", r"No module named 'no_such_module'"),
    ("fit broken --features json:dmps -o m", r"module json has no function 'dmps'"),
    ("fit X.npy y.npy --features json:dumps -o m", r"--features is for folders of pictures"),
    ("encode model.safetensors broken -o c.npy", r"the model was not learnt from pictures"),
    # Labels and pairs.
    ("fit X.npy --label class -o m", r"X\.npy holds no labels called 'class': give LABELS or"),
    ("fit X.npy --loss hinge -o m", r"--loss is for labels or pairs, and X\.npy has none"),
    ("fit X.npy --solver cut -o m", r"--solver is for labels or pairs, and X\.npy has none"),
    ("fit X.npy --similar 3 -o m", r"--similar is for labels or pairs, and X\.npy has none"),
    ("fit X.npy --no-refine -o m", r"--refine is for labels or pairs, and X\.npy has none"),
    ("fit X.npy --init model.safetensors -o m", r"learnt from labels or pairs, and .* has none"),
    ("fit X.npy y.npy --metric cosine -o m", r"--metric is for points without labels and pairs"),
    ("fit X.npy y.npy --prefixes 8 -o m", r"--prefixes is for points without labels and pairs"),
    (
        "fit X.npy --prefixes 12 --bits 16 -o m",
        r"prefixes must be multiples of 8, rising",
    ),
    ("fit X.npy --query-function trees -o m", r"query_function must be one of"),
    ("fit X.npy --quality good -o m", r"quality must be one of"),
    (
        "fit X.npy --method ITQ --query-function linear -o m",
        r"--query-function is not for",
    ),
    ("fit X.npy --metric hamming -o m", r"metric must be one of cosine, euclidean|metric"),
    ("fit X.npy --hash-function trees -o m", r"hash_function"),
    ("fit X.npy few-labels.npy -o m", r"X\.npy holds 40 points, but few-labels\.npy 7 labels"),
    ("fit X.npy missing.csv -o m", r"labels: there is no file missing\.csv"),
    ("fit X.npy folder -o m", r"labels: folder is a folder, and a file is needed"),
    ("fit X.npy words.csv --label colour -o m", r"nothing called 'colour', but a, b, y"),
    ("fit X.npy one-class.npy -o m", r"y gives no dissimilar pairs"),
    ("fit X.npy real-labels.npy -o m", r"y holds continuous numbers; labels are classes"),
    ("fit one-row.npy --pairs pairs-far.csv -o m", r"must lie in 0\.\.0"),
    ("fit X.npy --pairs pairs-far.csv -o m", r"pairs-far\.csv: j must lie in 0\.\.39"),
    ("fit X.npy --pairs pairs-self.csv -o m", r"joins a point with itself"),
    ("fit X.npy --pairs pairs-half.csv -o m", r"i must be whole numbers"),
    ("fit X.npy --pairs pairs-two.csv -o m", r"must hold i, j and y; y is missing"),
    ("fit X.npy --pairs pairs-nan.csv -o m", r"line 2, column 'y': 'nan' is no number"),
    ("fit X.npy --pairs pairs-underscore.csv -o m", r"i must be whole.*line 2 has '1_1'"),
    ("fit X.npy shifted.csv -o m", r"40 points, but shifted\.csv 41 labels \(does line 1 name"),
    ("fit X.npy gap-labels.csv -o m", r"gap-labels\.csv: line 2 is empty, and others follow"),
    ("fit X.npy NA-labels.csv -o m", r"NA-labels\.csv: line 1, column '0': 'NA' is no label"),
    ("fit X.npy --pairs narrow.npy -o m", r"must be of shape \(n, 3\), for i, j and y"),
    # Settings.
    ("fit X.npy y.npy -o m --bits 0", r"n_bits must be a whole number from 1 to 32767, got 0"),
    ("fit X.npy y.npy -o m --bits 100000", r"n_bits must be .* 1 to 32767, got 100000"),
    ("fit X.npy y.npy -o m --loss hinges", r"loss must be one of .* did you mean 'hinge'\?"),
    ("fit X.npy y.npy -o m --solver cutt", r"did you mean 'cut'\?"),
    ("fit X.npy y.npy -o m --hash-function liner", r"did you mean 'linear'\?"),
    ("fit X.npy y.npy -o m --similar 0", r"n_similar must be a whole number of at least 1"),
    ("fit X.npy y.npy -o m --dissimilar -5", r"n_dissimilar must be a whole number of at least 1"),
    ("fit X.npy y.npy -o m --validation 2", r"validation must be a fraction below 1"),
    ("fit X.npy y.npy -o m --validation 0.001", r"of 40 points would hold out 0"),
    ("fit X.npy y.npy -o m --jobs 0", r"--jobs must not be 0"),
    ("fit X.npy y.npy --auto --auto-seconds -1 -o m", r"seconds must be a number above 0, got -1"),
    ("fit X.npy --pairs pairs-far.csv --auto -o m", r"must lie in 0\.\.39"),
    ("fit X.npy y.npy --init model.safetensors --bits 6 -o m", r"--init goes on with 5 for --bits"),
    (
        "fit X.npy y.npy --init model.safetensors --hash-function rbf -o m",
        r"--init goes on with linear for --hash-function, .*; got rbf",
    ),
    ("fit narrow.npy y.npy --init model.safetensors -o m", r"2 features, but .* expecting 6"),
    # Where results go.
    ("fit X.npy y.npy -o folder", r"folder is a folder, and a file is to be written"),
    ("fit X.npy y.npy -o taken/m", r"taken/m cannot be written: .*taken is no folder"),
    ("fit X.npy y.npy -o taken/deep/m", r"m cannot be written: .*taken is no folder"),
    ("fit X.npy y.npy -o dangling", r"dangling is a link to nowhere, which does not exist"),
    ("fit X.npy y.npy -o loop", r"loop: cannot be written: Too many levels of symbolic links"),
    ("fit X.npy y.npy -o pipe", r"pipe is a pipe, and a regular file is to be written"),
    ("fit X.npy y.npy -o device", r"device is a device, and a regular file is"),
    (f"fit X.npy y.npy -o {'n' * 300}", r"n: cannot be written: File name too long"),
    ("encode model.safetensors X.npy -o taken/c.npy", r"taken is no folder"),
    ("export model.safetensors --onnx pipe", r"pipe is a pipe, and"),
    ("index codes.npy -o device", r"device is a device, and"),
    ("demo -o device", r"device is a device, and"),
    ("compare X.npy y.npy --html pipe", r"pipe is a pipe, and"),
    ("compare X.npy y.npy --html X.npy", r"X\.npy is what the file is made from"),
    ("compare X.npy y.npy --html page.html -k 5 -k 5", r"k must be given once each, got 5 twice"),
    ("reproduce free-codes --scale tiny --output pipe", r"pipe is a pipe, and"),
    ("reproduce free-codes --scale tiny --numbers folder", r"folder is a folder, and a file"),
    ("fit X.npy y.npy -o ./y.npy", r"y\.npy is what the file is made from, and would be lost"),
    ("encode model.safetensors X.npy -o X.npy", r"X\.npy is what the file is made from"),
    ("index codes.npy -o codes.npy", r"codes\.npy is what the file is made from"),
    ("encode model.safetensors X.npy -o c.csv", r"c\.csv must end in \.npy"),
    # Models.
    ("encode missing X.npy -o c.npy", r"missing: No such file or directory"),
    ("encode folder X.npy -o c.npy", r"folder is a folder, and a model is a file"),
    ("encode pipe X.npy -o c.npy", r"pipe is a pipe, and a model is a regular file"),
    ("encode /dev/zero X.npy -o c.npy", r"/dev/zero is a device, and a model is a regular file"),
    ("inspect pipe", r"pipe is a pipe, and what can be inspected is a regular file"),
    ("inspect /dev/zero", r"/dev/zero is a device"),
    ("encode empty.safetensors X.npy -o c.npy", r"empty\.safetensors is empty"),
    ("encode foreign.safetensors X.npy -o c.npy", r"a safetensors file, but no model"),
    ("encode huge.safetensors X.npy -o c.npy", r"huge\.safetensors is not a model file"),
    ("encode truncated.safetensors X.npy -o c.npy", r"truncated\.safetensors is truncated"),
    ("encode flipped.safetensors X.npy -o c.npy", r"flipped\.safetensors is damaged"),
    ("encode X.npy X.npy -o c.npy", r"X\.npy is not a model file"),
    ("encode model.safetensors narrow.npy -o c.npy", r"2 features, but .* expecting 6"),
    ("encode model.safetensors nan.npy -o c.npy", r"row 17 does"),
    ("inspect foreign.index", r"foreign\.index is not a model file"),
    ("inspect X.npy", r"X\.npy holds no codes .*it is float64"),
    # Codes and indexes.
    ("index X.npy -o i", r"X\.npy holds no codes .*it is float64 of shape \(40, 6\)"),
    ("index y.npy -o i", r"y\.npy holds no codes"),
    ("index codes.npy -o i --bits 9", r"of 9 bits must be .* packed uint8 of shape \(n, 2\)"),
    ("index codes.npy -o i --bits 3", r"must be 0 in the padding bits beyond n_bits=3"),
    ("index codes.npy -o i --ids few-labels.npy", r"few-labels\.npy holds 7 ids, and there are 40"),
    ("index codes.npy -o i --ids negative-ids.npy", r"ids must lie in 0..2"),
    ("index codes.npy -o i --ids twin-ids.npy", r"ids must not name a code twice"),
    ("index codes.npy -o i --ids few-words.txt", r"few-words\.txt holds 3 ids, and there are 40 c"),
    ("index codes.npy -o i --ids words.txt", r"names must not name a code twice, 'a' does"),
    (
        "index codes.npy -o i --ids X.npy",
        r"ids in X\.npy of shape \(40, 6\) must hold only 0 and 1",
    ),
    (
        "index codes.npy -o i --ids half-ids.npy",
        r"ids must be a list of whole numbers, got float64",
    ),
    ("index codes.npy -o i --ids folder", r"folder"),
    ("add missing.index codes.npy", r"missing\.index"),
    ("add foreign.index codes.npy", r"foreign\.index is not an index"),
    ("add truncated.index codes.npy", r"truncated\.index is truncated"),
    ("add folder codes.npy", r"folder is a folder"),
    ("add good.index X.npy", r"X\.npy holds no codes"),
    ("add good.index wide-codes.npy", r"of 8 bits must be"),
    ("add good.index codes.npy --ids y.npy", r"ids must not name a code twice|ids must be new"),
    (
        "add good.index codes.npy --ids words.txt",
        r"calls its codes by numbers, and words\.txt holds",
    ),
    ("add named.index codes.npy", r"named\.index calls its codes by names: give --ids"),
    ("add named.index codes.npy --ids few-words.txt", r"holds 3 ids, and there are 40 codes$"),
    ("add good.index codes.npy -o codes.npy", r"codes\.npy is what the file is made from"),
    ("add good.index codes.npy -o folder", r"folder is a folder"),
    ("remove missing.index 1", r"missing\.index"),
    (
        "remove good.index three",
        r"ids must be whole numbers, as those of good\.index are, got 'three'",
    ),
    ("remove good.index 1.0", r"ids must be whole numbers.* got '1\.0'"),
    ("remove good.index 99999999999999999999", r"ids must lie in 0\.\.2\^63 - 1"),
    ("remove good.index --ids half-ids.npy", r"ids must be whole numbers.* got 0\.5"),
    ("remove damaged-names.index n1", r"damaged-names\.index is damaged: its names do not match"),
    ("search damaged-names.index codes.npy", r"damaged-names\.index is damaged: its names"),
    ("search good.index codes.npy -r -1", r"r must be a whole number of at least 0, got -1"),
    ("search good.index codes.npy --probe 4", r"--probe is for approximate indexes, and good"),
    ("search rough.index codes.npy --probe 0", r"n_probe must be a whole number of at least 1"),
    ("search named.index codes.npy --names words.txt", r"has names of its own: leave out --names"),
    (
        "search good.index codes.npy --rerank few-X.npy --query-vectors X.npy",
        r"few-X.npy: row i is taken for id i, and there is no row for id 39",
    ),
    (
        "search good.index codes.npy --rerank X.npy --query-vectors few-X.npy",
        r"queries must be \(40, D\), got shape \(7, 6\)",
    ),
    (
        "search good.index codes.npy --rerank X.npy --query-vectors wide-X.npy",
        r"vectors must be \(n, 9\), as queries are",
    ),
    (
        "search good.index codes.npy -k 5 --candidates 4 --rerank X.npy --query-vectors X.npy",
        r"candidates must be a whole number of at least 5, got 4",
    ),
    (
        "search good.index X.npy --rerank words.txt --model unlabelled.safetensors",
        r"vectors: words\.txt must end in",
    ),
    ("index words.csv -o i", r"codes: words\.csv must end in \.npy"),
    ("search empty.index codes.npy", r"empty\.index is not an index"),
    ("search foreign.index codes.npy", r"foreign\.index is not an index"),
    ("search truncated.index codes.npy", r"truncated\.index is truncated"),
    ("search good.index codes.npy -k 0", r"k must be a whole number of at least 1, got 0"),
    ("search good.index codes.npy -k -3", r"k must be a whole number of at least 1, got -3"),
    ("search good.index wide-codes.npy", r"of 8 bits must be"),
    ("search good.index X.npy", r"X\.npy holds no codes"),
    (
        "search good.index X.npy --model model.safetensors",
        r"the index holds codes of 8 bits, and model.safetensors makes codes of 5",
    ),
    ("search good.index codes.npy --names few-labels.npy", r"holds 7 names"),
    ("search good.index codes.npy --names gap-labels.csv", r"line 2 is empty, and others follow"),
    # Measuring.
    (
        "evaluate X.npy --model model.safetensors",
        r"holds no labels called 'y': give --labels",
    ),
    (
        "evaluate X.npy --model model.safetensors --labels words.txt",
        r"labels of queries are text and those of the base int64: none are the same",
    ),
    ("evaluate X.npy --model unlabelled.safetensors --labels y.npy", r"learnt without labels"),
    (
        "evaluate codes.npy codes.npy --labels few-labels.npy --base-labels y.npy",
        r"40 query_codes do not fit 7 query_labels",
    ),
    (
        "evaluate codes.npy wide-codes.npy --labels y.npy --base-labels y.npy",
        r"codes.npy holds codes of 8 bits, and wide-codes.npy of 24",
    ),
    ("evaluate X.npy --model model.safetensors --labels y.npy -k 0", r"k must be between 1 and 40"),
    ("compare mnits", r"data set must be one of .* did you mean 'mnist'\?"),
    ("compare X.npy y.npy -m IQT", r"method must be one of .* did you mean 'ITQ'\?"),
    ("compare X.npy y.npy -m ITQ --train 1000", r"n_train must be a whole number from 1 to 36"),
    ("compare X.npy y.npy -m ITQ -m LSH -m ITQ", r"named once each, got 'ITQ' twice"),
    ("compare X.npy y.npy -m all -m ITQ", r"-m all takes every method there is: leave out any"),
    ("compare X.npy y.npy --bits 8 --bits 8", r"bits must be given once each, got 8 twice"),
    ("compare X.npy y.npy --bits 0", r"bits must be a whole number from 1 to 32767, got 0"),
    ("compare X.npy y.npy --seed 1 --seed 1", r"seeds must be given once each, got 1 twice"),
    ("compare X.npy y.npy -k 5 -k 5", r"k must be given once each, got 5 twice"),
    ("compare X.npy y.npy --loss hinges", r"loss must be one of .* did you mean 'hinge'\?"),
    ("compare X.npy --label class", r"X\.npy holds no labels called 'class': give LABELS"),
    # Comparing without labels.
    ("compare words.csv --html p.html --label x", r"line 3, column 'b': 'many' is no number"),
    ("compare nan.npy --html p.html", r"nan\.npy must not hold NaN or infinity; row 17 does"),
    ("compare few-X.npy --html p.html", r"few-X\.npy must hold at least 20 points.*, got 7"),
    ("compare counted.npy --html p.html", r"column 0 of counted\.npy numbers the rows.*no feature"),
    ("compare keyed.npy --html p.html", r"column 6 of keyed\.npy numbers the rows \(2443, 2406"),
    ("compare one-row.npy --html p.html", r"one-row\.npy must hold at least 20 points.*, got 1"),
    ("fit keyed.npy -o m", r"column 6 of keyed\.npy numbers the rows .*an id is no feature"),
    ("fit one-row.npy -o m", r"one-row\.npy must hold at least 3 points, got 1"),
    ("fit nan.npy -o m", r"nan\.npy must not hold NaN or infinity; row 17 does"),
    ("evaluate narrow.npy --model unlabelled.safetensors", r"2 features, but .* expecting 6"),
    ("evaluate narrow.npy X.npy --model unlabelled.safetensors", r"queries have 2 features, and"),
    (
        "compare X.npy --queries narrow.npy --html p.html",
        r"queries have 2 features, and X\.npy .*6",
    ),
    ("compare X.npy --queries nan.npy", r"nan\.npy must not hold NaN or infinity; row 17 does"),
    ("compare X.npy --queries X.npy --html X.npy", r"X\.npy is what the file is made from"),
    ("compare X.npy -m ITQ --bits 8", r"--bits is for labels, and neighbours are compared"),
    ("compare X.npy -m ITQ -k 8", r"^Error: -k is for labels, and neighbours are compared"),
    ("compare X.npy --metric hamming", r"metric must be one of euclidean, cosine; got 'hamming'"),
    ("compare X.npy --bytes 0", r"n_bytes must be a whole number from 1 to 4095, got 0"),
    ("compare X.npy --seconds 0", r"seconds must be a number above 0, got 0\.0"),
    ("compare X.npy --seed 1 --seed 2", r"--seed can be given once where neighbours are compared"),
    ("compare X.npy --text words.txt", r"--text is for --html, which is not given"),
    (
        "compare X.npy --text title --html p.html",
        r"a \.npy file holds no texts: --text takes a \.txt",
    ),
    ("compare X.npy --text X.npy --html p.html", r"a \.npy file holds no texts"),
    (
        "compare X.npy --text few-words.txt --html p.html",
        r"few-words\.txt holds 3 texts, and there",
    ),
    ("compare X.npy -m IQT", r"method must be one of .* did you mean 'ITQ'\?"),
    ("compare X.npy y.npy --seconds 3", r"--seconds is for points without labels, or with --bytes"),
    ("compare X.npy y.npy --base 30", r"--base is for points without labels, or with --bytes"),
    ("evaluate codes.npy --vectors few-X.npy", r"codes\.npy holds 40 codes, but few-X\.npy 7 rows"),
    ("evaluate codes.npy --vectors nan.npy", r"nan\.npy must not hold NaN or infinity; row 17"),
    ("evaluate codes.npy --vectors X.npy -k 3", r"-k is for labels: neighbours are looked for"),
    ("evaluate codes.npy --vectors counted.npy", r"column 0 of counted\.npy numbers the rows"),
    (
        "evaluate codes.npy wide-codes.npy --vectors X.npy --base-vectors X.npy",
        r"codes\.npy holds codes of 8 bits, wide-codes\.npy 24",
    ),
    ("evaluate few-X.npy --model unlabelled.safetensors", r"must hold at least 20 points.* got 7"),
    ("inspect wide-X.npy --model model.safetensors", r"9 features, but MACHash is expecting 6"),
    (
        "index codes.npy -o i --ids shifted.csv --no-header",
        r"holds 41 ids, and there are 40 codes \(does line 1 name the column\? --header or",
    ),
    (
        "store push sqlite:///s.db codes.npy --ids shifted.csv --no-header",
        r"holds 41 ids, and there are 40 codes \(does line 1 name the column\? --header or",
    ),
    # A store is made only when all that could be refused has been looked at.
    (
        "store push sqlite:///s.db codes.npy --ids long-ids.csv",
        r"ids of long-ids\.csv must be of at most 1,024 bytes in UTF-8; row 7 has 2,000: 'xxx",
    ),
    (
        "store push sqlite:///s.db codes.npy --ids twin-ids.npy",
        r"ids of twin-ids\.npy must not name a code twice, 0 does",
    ),
    (
        "store push sqlite:///s.db codes.npy --ids words.txt",
        r"ids of words\.txt must not name a code twice, 'a' does",
    ),
    (
        "store push duckdb:///s.duckdb codes.npy --ids years.csv --payload year",
        r"payloads cannot be kept: duckdb:///s\.duckdb holds codes only",
    ),
    ("store search sqlite:///s.db codes.npy", r"there is no store at sqlite:///s\.db; `auxhash s"),
    ("build long-ids.csv -o b", r"ids of long-ids\.csv must be of at most 1,024 bytes.* row 7 has"),
    ("build words.csv -o b", r"line 3, column 'b': 'many' is no number"),
    ("build X.npy --model codes.npy -o b", r"codes\.npy"),
    ("build narrow.npy --model model.safetensors -o b", r"2 features, but MACHash is expecting 6"),
    ("data get mnits", r"did you mean 'mnist'\?"),
    ("bench --points 0", r"points must be a whole number of at least 100, got 0"),
]


@pytest.mark.parametrize(("command", "message"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_on_the_command_line(files, command, message, monkeypatch):
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 1, result.output
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("Error: "), result.output
    assert "fault of auxhash" not in last
    assert re.search(message, last), last
    assert result.stderr.count("Error") == 1
    assert sorted(files.rglob("*")) == before  # nothing half done is left behind


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do all")
def test_without_permission(files, tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "X.npy").write_bytes((files / "X.npy").read_bytes())
    closed.chmod(0)
    for command in (f"fit {closed}/X.npy -o m", f"fit {files}/X.npy {files}/y.npy -o {closed}/m"):
        result = CliRunner().invoke(main, shlex.split(command))
        assert result.exit_code == 1
        assert "ermission" in result.output
    closed.chmod(0o700)


FITTED = MACHash(n_bits=5, n_similar=5, n_dissimilar=10, max_iter=1, random_state=0, n_jobs=1)
CODES = np.arange(40, dtype=np.uint8)[:, None]

CALLS = [
    ("labels of other length", lambda: MACHash().fit(X, Y[:7]), "inconsistent numbers of samples"),
    ("no labels", lambda: MACHash().fit(X), "requires y to be passed|y cannot be None"),
    ("NaN", lambda: MACHash().fit(np.full((9, 2), np.nan), Y[:9]), "Input X contains NaN"),
    ("text for X", lambda: MACHash().fit(X.astype(str) + "m", Y), "X must hold numbers: could not"),
    ("text encoded", lambda: FITTED.fit(X, Y).encode(X[:2].astype(str) + "m"), "X must hold numb"),
    ("continuous", lambda: MACHash().fit(X, X[:, 0]), "y holds continuous numbers; labels are cl"),
    ("continuous, one", lambda: baselines.SDH().fit(X, X[:, 0]), "y holds continuous numbers"),
    ("continuous, auto", lambda: choose(X, X[:, 0]), "y holds continuous numbers"),
    (
        "infinite labels",
        lambda: MACHash().fit(X, np.where(Y, Y, np.inf)),
        "y must be finite; row 0",
    ),
    ("bytes", lambda: MACHash().fit(X, Y.astype("S")), "y must be numbers or text, got bytes"),
    (
        "too many bits",
        lambda: MACHash(n_bits=32_768).fit(X, Y),
        "n_bits must be .* from 1 to 32767",
    ),
    (
        "bits of LSH",
        lambda: baselines.LSH(n_bits=32_768).fit(X),
        "n_bits must be .* from 1 to 32767",
    ),
    ("a list for loss", lambda: MACHash(loss=["ksh"]).fit(X, Y), "loss must be one of"),
    ("one point", lambda: MACHash().fit(X[:1], Y[:1]), "minimum of 2 is required"),
    ("text for bits", lambda: MACHash(n_bits="8").fit(X, Y), "n_bits must be a whole number"),
    ("half a bit", lambda: MACHash(n_bits=8.5).fit(X, Y), "n_bits must be a whole number"),
    ("loss misspelt", lambda: MACHash(loss="kshh").fit(X, Y), "did you mean 'ksh'"),
    ("solver misspelt", lambda: MACHash(z_step="descend").fit(X, Y), "did you mean 'descent'"),
    ("negative mu", lambda: MACHash(mu=-1).fit(X, Y), 'mu must be a number above 0 or "auto"'),
    ("alpha of 1", lambda: MACHash(alpha=1).fit(X, Y), "alpha must be a number above 1"),
    ("unknown penalty", lambda: MACHash(penalty="l1").fit(X, Y), "penalty must be"),
    ("init of other bits", lambda: MACHash(init=np.ones((40, 3))).fit(X, Y), "init must be of"),
    ("pairs as a list", lambda: MACHash().fit(X, affinity=[(0, 1)]), "affinity must be an auxhash"),
    (
        "a seed below 0",
        lambda: MACHash(random_state=-1).fit(X, Y),
        "random_state must be None, a w",
    ),
    (
        "a flag as the seed",
        lambda: MACHash(random_state=True).fit(X, Y),
        "random_state must be a whole number, not True",
    ),
    (
        "a flag of NumPy as the seed",
        lambda: baselines.LSH(random_state=np.False_).fit(X),
        r"random_state must be a whole number, not .*False",
    ),
    (
        "warm_start as text",
        lambda: MACHash(warm_start="x").fit(X, Y),
        "warm_start must be True or False, got 'x'",
    ),
    (
        "warm_start as None",
        lambda: MACHash(warm_start=None).fit(X, Y),
        "warm_start must be True or False, got None",
    ),
    (
        "a checkpoint without a name",
        lambda: MACHash().fit(X, Y, checkpoint=""),
        'checkpoint must name a folder, got "";',
    ),
    ("not fitted", lambda: MACHash().encode(X), "not fitted yet"),
    ("other features", lambda: FITTED.fit(X, Y).encode(X[:, :2]), "2 features, but .* expecting 6"),
    ("a flat point", lambda: FITTED.fit(X, Y).encode(X[0]), "Expected 2D array"),
    ("k of 0", lambda: HammingIndex(8).add(CODES).search(CODES, 0), "k must be a whole number"),
    ("no bits", lambda: HammingIndex(0), "n_bits must be a whole number from 1 to"),
    ("an empty index", lambda: HammingIndex(8).search(CODES, 1), "the index is empty"),
    ("negative radius", lambda: HammingIndex(8).add(CODES).radius_search(CODES, -1), "r must be"),
    ("real codes", lambda: HammingIndex(6).add(X), "must hold only -1 and"),
    (
        "rank beyond",
        lambda: metrics.precision_at_k(CODES, CODES, Y, Y, 41),
        "k must be between 1 and 40",
    ),
    ("rank 0", lambda: metrics.precision_at_k(CODES, CODES, Y, Y, 0), "k must be between 1"),
    (
        "no ground truth",
        lambda: metrics.evaluate(CODES, CODES),
        "give query_labels and",
    ),
    ("a point twice", lambda: affinity.from_pairs([0], [0], [1], 3), "joins a point with itself"),
    ("no pairs", lambda: affinity.from_pairs([], [], [], 3), "at least one pair is needed"),
    ("three-valued labels", lambda: affinity.from_labels(Y[None, None]), "y must be of shape"),
    ("loss of nothing", lambda: losses.get("nothing"), "loss must be one of"),
    ("unknown data", lambda: datasets.load("cifar"), "did you mean 'cifar10'"),
    ("unknown option", lambda: datasets.load("digits", n_trian=3), "has no option 'n_trian'"),
    ("a picture for GIST", lambda: gist(np.zeros((2, 32, 16))), "images must be of shape"),
    ("dark light", lambda: gist(-np.ones((1, 32, 32))), "intensities of 0 or more"),
    ("no folder", lambda: image_folder("nowhere at all"), "is no folder"),
    ("bits of ITQ", lambda: baselines.ITQ(n_bits=7).fit(X), "n_bits"),
]


@pytest.mark.parametrize(("call", "message"), [c[1:] for c in CALLS], ids=[c[0] for c in CALLS])
def test_in_python(call, message):
    with pytest.raises((ValueError, TypeError, OSError), match=message):
        call()


def test_files_in_python(files):
    for call, name, message in [
        (auxhash.load, "flipped.safetensors", "is damaged"),
        (HammingIndex.load, "foreign.index", "is not an index"),
        (tables.read_features, "huge.npy", "is not a whole"),
        (tables.read_labels, "traversal.npz", "holds nothing called 'y'"),
        (tables.read_pairs, "pairs-two.csv", "y is missing"),
        (read_image, "empty.png", "is no picture that can be read"),
    ]:
        with pytest.raises(ValueError, match=message):
            call(files / name)
    assert not list(files.parent.glob("escaped*"))


def test_the_table_is_long():
    assert len(COMMANDS) + len(CALLS) >= 60
