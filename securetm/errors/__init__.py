"""Every way to fail, as one tree, by room. A field never holds the words of a document: an error may be shown to others."""

from securetm.errors.accounting import *
from securetm.errors.budget import *
from securetm.errors.choices import *
from securetm.errors.corpus import *
from securetm.errors.counts import *
from securetm.errors.homomorphic import *
from securetm.errors.leakage import *
from securetm.errors.ledger import *
from securetm.errors.masked import *
from securetm.errors.matching import *
from securetm.errors.mechanisms import *
from securetm.errors.models import *
from securetm.errors.noise import *
from securetm.errors.paying import *
from securetm.errors.refusals import *
from securetm.errors.running import *
from securetm.errors.sentences import *
from securetm.errors.tree import *
from securetm.errors.words_paid import *
